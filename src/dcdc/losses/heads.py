"""Losses of a head's assignments: the paper's two contrastive views and balance, IIC's and SCAN's.

Shapes: B images, r perturbed copies of each, K clusters. `assign` is B x K, `assign_perturbed`
is rB x K with copy 1 of all B images first, then copy 2, and so on.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.sizes import EQUAL, FREE, Sizes, image_weights, shares_of

SCARCE = 0.1
"""Of an even share. Clusters of free sizes are kept from falling below it, so that none is lost."""
# Below this length a row or column counts as empty: its cosine fades to zero instead of
# dividing by zero, and the gradient stays finite.
EMPTY = 1e-8


def paired_assignments(assign: Tensor, assign_perturbed: Tensor) -> tuple[Tensor, Tensor]:
    """Both as rB x K in float32 (float64 stays), the originals repeated so that rows pair up."""
    if assign.ndim != 2 or assign_perturbed.ndim != 2:
        raise ValueError(
            f"assignments must be matrices (images x clusters), got shapes {tuple(assign.shape)} "
            f"and {tuple(assign_perturbed.shape)}"
        )
    (n_images, n_clusters), (n_copies, n_clusters_perturbed) = assign.shape, assign_perturbed.shape
    if n_clusters != n_clusters_perturbed:
        raise ValueError(
            f"both copies need the same clusters, got {n_clusters} and {n_clusters_perturbed}"
        )
    if n_images == 0 or n_copies == 0 or n_copies % n_images:
        raise ValueError(
            f"assign_perturbed must hold a whole number of copies of every image, "
            f"got {n_copies} rows for {n_images} images"
        )
    repeated = assign.repeat(n_copies // n_images, 1)
    return at_least_float32(repeated), at_least_float32(assign_perturbed)


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision is lifted to float32; float64 stays, for proofs that need its digits."""
    return values if values.dtype == torch.float64 else values.float()


def sample_affinity(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """M, rB x rB: cosine of every original row with every perturbed row."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    return _cosine_of_rows(original, perturbed)


def class_affinity(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """N, K x K: cosine of every original column with every perturbed column."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    return _cosine_of_rows(original.T, perturbed.T)


def _cosine_of_rows(left: Tensor, right: Tensor) -> Tensor:
    # Autocast would quietly run this product in half precision.
    with torch.autocast(left.device.type, enabled=False):
        return F.normalize(left, dim=1, eps=EMPTY) @ F.normalize(right, dim=1, eps=EMPTY).T


def contrast(affinity: Tensor, temperature: float) -> Tensor:
    """InfoNCE over the rows of a square affinity matrix; the diagonal holds the positives."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    own_index = torch.arange(len(affinity), device=affinity.device)
    return F.cross_entropy(affinity / temperature, own_index)


def sample_view_loss(
    assign: Tensor, assign_perturbed: Tensor, temperature: float = 0.5, sizes: Sizes = EQUAL
) -> Tensor:
    """Each image finds its own perturbed copy among all rB of the batch.

    The paper's text compares an image with B perturbed ones, so with B-1 negatives. Its authors'
    code repeats the originals and compares with all rB, and so does this: the other r-1 copies of
    the same image count as negatives.

    It is lowest where clusters are of equal size; for other `sizes` images weigh accordingly, as
    themselves and among the negatives.
    """
    affinity = sample_affinity(assign, assign_perturbed)
    shares = shares_of(at_least_float32(assign), sizes)
    if shares is None:
        return contrast(affinity, temperature)
    original, perturbed = paired_assignments(assign, assign_perturbed)
    own_index = torch.arange(len(affinity), device=affinity.device)
    logits = affinity / temperature + image_weights(perturbed, shares).log()
    each = F.cross_entropy(logits, own_index, reduction="none")
    return (image_weights(original, shares) * each).mean()


def class_view_loss(assign: Tensor, assign_perturbed: Tensor, temperature: float = 0.5) -> Tensor:
    """Each cluster's column over the originals finds its own column over the perturbed copies."""
    return contrast(class_affinity(assign, assign_perturbed), temperature)


def balance_loss(assign: Tensor, sizes: Sizes = EQUAL) -> Tensor:
    """The balance term of the authors' public code; the paper's text does not have it.

    log K minus the entropy of the mean assignment: 0 when all clusters are filled evenly. Of given
    `sizes`: the divergence from them. Of free ones: 0 where every cluster has some images.
    """
    mean = at_least_float32(assign).mean(dim=0)
    tiny = torch.finfo(mean.dtype).tiny
    if sizes == FREE:
        scarce = math.log(SCARCE / assign.shape[1])
        return (scarce - mean.clamp_min(tiny).log()).clamp_min(0).mean()
    shares = shares_of(at_least_float32(assign), sizes)
    if shares is not None:
        return (mean * (mean.clamp_min(tiny).log() - shares.log())).sum()
    # entr(p) = -p log p with value 0 at p = 0, but its gradient there is infinite.
    entropy: Tensor = torch.special.entr(mean.clamp_min(tiny)).sum()
    return math.log(assign.shape[1]) - entropy


class DcdcLoss(NamedTuple):
    total: Tensor
    terms: dict[str, Tensor]
    """Each term before its weight, by name; terms that weigh nothing are left out."""


def dcdc_loss(
    assign: Tensor,
    assign_perturbed: Tensor,
    temperature: float = 0.5,
    *,
    sample_weight: float = 1.0,
    class_weight: float = 1.0,
    balance_weight: float = 0.0,
    sizes: Sizes = EQUAL,
) -> DcdcLoss:
    """The weighted sum and its named terms; one view alone is a weight of zero for the other. The
    class view has no preference among `sizes`: it compares directions of columns."""
    terms: dict[str, Tensor] = {}
    if sample_weight:
        terms["sample_view"] = sample_view_loss(assign, assign_perturbed, temperature, sizes)
    if class_weight:
        terms["class_view"] = class_view_loss(assign, assign_perturbed, temperature)
    if balance_weight:
        terms["balance"] = balance_loss(assign, sizes)
    if not terms:
        raise ValueError("all loss weights are zero: give at least one term a weight")
    weights = {
        "sample_view": sample_weight,
        "class_view": class_weight,
        "balance": balance_weight,
    }
    total = sum(weights[name] * term for name, term in terms.items())
    assert isinstance(total, Tensor)
    return DcdcLoss(total, terms)


def joint_assignment(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """P, K x K, symmetric, sums to 1: the share of pairs in cluster i once and in j once."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    # Autocast would quietly run this product in half precision.
    with torch.autocast(original.device.type, enabled=False):
        joint = original.T @ perturbed / len(original)
    return (joint + joint.T) / 2


def mutual_information(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """From 0, where the one says nothing about the other, to log K: even and sure."""
    joint = joint_assignment(assign, assign_perturbed)
    marginal = joint.sum(dim=0)
    tiny = torch.finfo(joint.dtype).tiny  # nothing times its logarithm is nothing
    log_joint, log_marginal = joint.clamp_min(tiny).log(), marginal.clamp_min(tiny).log()
    return (joint * log_joint).sum() - 2 * (marginal * log_marginal).sum()


def iic_loss(assign: Tensor, assign_perturbed: Tensor) -> DcdcLoss:
    """Lower is better: the mutual information with its sign turned."""
    loss = -mutual_information(assign, assign_perturbed)
    return DcdcLoss(loss, {"mutual_information": loss})


def agreement_loss(assign: Tensor, assign_perturbed: Tensor) -> Tensor:
    """Mean of -log of the rows' dot product: 0 where both are sure of the same cluster."""
    original, perturbed = paired_assignments(assign, assign_perturbed)
    together = (original * perturbed).sum(dim=1)
    return -together.clamp_min(torch.finfo(together.dtype).tiny).log().mean()


def scan_loss(
    assign: Tensor, assign_perturbed: Tensor, balance_weight: float = 5.0, sizes: Sizes = EQUAL
) -> DcdcLoss:
    """SCAN (Van Gansbeke et al., 2020): an image and its neighbour agree, and clusters are filled.

    Its entropy of the mean assignment is the balance term but for a constant.
    """
    terms = {
        "agreement": agreement_loss(assign, assign_perturbed),
        "balance": balance_loss(assign, sizes),
    }
    return DcdcLoss(terms["agreement"] + balance_weight * terms["balance"], terms)
