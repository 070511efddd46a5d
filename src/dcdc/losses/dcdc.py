"""The paper's loss: the sample view over rows, the class view over columns, each with a weight.

Shapes: B images, r perturbed copies of each, K clusters of a head.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import at_least_float32, class_affinity, sample_affinity


def contrast(affinity: Tensor, temperature: float) -> Tensor:
    """InfoNCE over the rows of a square affinity matrix; the diagonal holds the positives."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    own_index = torch.arange(len(affinity), device=affinity.device)
    return F.cross_entropy(affinity / temperature, own_index)


def sample_view_loss(assign: Tensor, assign_perturbed: Tensor, temperature: float = 0.5) -> Tensor:
    """Each image finds its own perturbed copy among all rB of the batch.

    The paper's text compares an image with B perturbed ones, so with B-1 negatives. Its authors'
    code repeats the originals and compares with all rB, and so does this: the other r-1 copies of
    the same image count as negatives.
    """
    return contrast(sample_affinity(assign, assign_perturbed), temperature)


def class_view_loss(assign: Tensor, assign_perturbed: Tensor, temperature: float = 0.5) -> Tensor:
    """Each cluster's column over the originals finds its own column over the perturbed copies."""
    return contrast(class_affinity(assign, assign_perturbed), temperature)


def balance_loss(assign: Tensor) -> Tensor:
    """The balance term of the authors' public code; the paper's text does not have it.

    log K minus the entropy of the mean assignment: 0 when all clusters are filled evenly.
    """
    mean = at_least_float32(assign).mean(dim=0)
    # entr(p) = -p log p with value 0 at p = 0, but its gradient there is infinite.
    entropy: Tensor = torch.special.entr(mean.clamp_min(torch.finfo(mean.dtype).tiny)).sum()
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
) -> DcdcLoss:
    """The weighted sum and its named terms; one view alone is a weight of zero for the other."""
    terms: dict[str, Tensor] = {}
    if sample_weight:
        terms["sample_view"] = sample_view_loss(assign, assign_perturbed, temperature)
    if class_weight:
        terms["class_view"] = class_view_loss(assign, assign_perturbed, temperature)
    if balance_weight:
        terms["balance"] = balance_loss(assign)
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
