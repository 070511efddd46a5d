"""Pure functions of assignments and projections: the two contrastive views, balance, and others."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from dcdc.losses.discrimination import (
    balanced_labels,
    discrimination_loss,
    moved_centres,
    next_duals,
)
from dcdc.losses.generative import (
    discriminator_loss,
    gaussian_divergence,
    generator_loss,
    reconstruction_loss,
    sharpened_target,
    student_assignment,
    target_divergence,
)
from dcdc.losses.heads import (
    DcdcLoss,
    agreement_loss,
    balance_loss,
    class_affinity,
    class_view_loss,
    dcdc_loss,
    iic_loss,
    joint_assignment,
    mutual_information,
    sample_affinity,
    sample_view_loss,
    scan_loss,
)
from dcdc.losses.relations import (
    Relations,
    earlier_loss,
    even_threshold,
    find_relations,
    indicator_loss,
    known_relations,
    label_loss,
    local_information_loss,
    relation_loss,
    sure_label_loss,
)
from dcdc.losses.self_supervised import (
    byol_loss,
    column_contrast_loss,
    nt_xent_loss,
    self_label_loss,
)
from dcdc.losses.sizes import Sizes
from dcdc.registry import Registry

LossFunction = Callable[[Tensor, Tensor], DcdcLoss]
"""Of the assignments of original (B x K) and perturbed copies (rB x K)."""


class HeadLoss(NamedTuple):
    """A loss over the assignments of a head, and the settings of the heads phase that it takes."""

    function: Callable[..., DcdcLoss]
    settings: tuple[str, ...] = ()
    sizes: bool = False
    """Whether it takes the clusters' `sizes`; else they are equal."""


LOSSES: Registry[HeadLoss] = Registry("loss", "dcdc.losses", {})
LOSSES.register(
    "dcdc",
    HeadLoss(
        dcdc_loss, ("temperature", "sample_weight", "class_weight", "balance_weight"), sizes=True
    ),
)
LOSSES.register("iic", HeadLoss(iic_loss))
LOSSES.register("scan", HeadLoss(scan_loss, ("balance_weight",), sizes=True))

__all__ = [
    "LOSSES",
    "DcdcLoss",
    "HeadLoss",
    "LossFunction",
    "Relations",
    "Sizes",
    "agreement_loss",
    "balance_loss",
    "balanced_labels",
    "byol_loss",
    "class_affinity",
    "class_view_loss",
    "column_contrast_loss",
    "dcdc_loss",
    "discrimination_loss",
    "discriminator_loss",
    "earlier_loss",
    "even_threshold",
    "find_relations",
    "gaussian_divergence",
    "generator_loss",
    "iic_loss",
    "indicator_loss",
    "joint_assignment",
    "known_relations",
    "label_loss",
    "local_information_loss",
    "moved_centres",
    "mutual_information",
    "next_duals",
    "nt_xent_loss",
    "reconstruction_loss",
    "relation_loss",
    "sample_affinity",
    "sample_view_loss",
    "scan_loss",
    "self_label_loss",
    "sharpened_target",
    "student_assignment",
    "sure_label_loss",
    "target_divergence",
]
