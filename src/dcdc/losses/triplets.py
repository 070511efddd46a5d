"""Triplets: an embedding is nearer to one of its own cluster than to others.

Shapes: B embeddings, D numbers of each, n others.
"""

from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.heads import EMPTY, at_least_float32


def triplet_loss(
    points: Tensor, partners: Tensor, others: Tensor, is_other: Tensor, margin: float
) -> Tensor:
    """Mean over the triplets of what the squared distance of directions to the partner (both B x D)
    plus `margin` is more than that to each of the `others` (B x n x D) that `is_other` (B x n)
    counts. No triplet: 0."""
    points, partners, others = (
        F.normalize(at_least_float32(each), dim=-1, eps=EMPTY)
        for each in (points, partners, others)
    )
    to_partner = (points - partners).square().sum(1, keepdim=True)
    to_others = (points[:, None] - others).square().sum(2)
    excess = (to_partner + margin - to_others).clamp_min(0) * is_other
    return excess.sum() / is_other.sum().clamp_min(1)
