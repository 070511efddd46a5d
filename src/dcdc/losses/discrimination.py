"""Stable cluster discrimination: SeCu (Qian, 2023). Images find the centre of their own cluster.

There are several sets of centres, of other numbers of clusters. Shapes: B images, two perturbed
copies of each (2B rows, first one copy of every image), S sets of at most K centres, D numbers.
Places of a set that has fewer than K centres are absent.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.heads import at_least_float32

ABSENT = -1e4
"""In the place of a logit or cosine: finite, so that nothing times it is nothing."""


def balanced_labels(cosines: Tensor, duals: Tensor, is_centre: Tensor) -> Tensor:
    """B x S: in each set the centre that is nearest to both copies, by their cosines (2B x S x K),
    once `duals` (S x K) have drawn images to clusters that have too few."""
    first, second = cosines.chunk(2)
    nearness = (first + second) / 2 + duals
    return nearness.masked_fill(~is_centre, ABSENT).argmax(2)


def next_duals(
    duals: Tensor, labels: Tensor, is_centre: Tensor, fewest: float, rate: float
) -> Tensor:
    """S x K: a cluster gains where its share of the batch is below `fewest` of an even share, and
    loses above it, but never falls below 0. So none can stay empty."""
    share = at_least_float32(F.one_hot(labels, duals.shape[1])).mean(0)
    even = 1 / is_centre.sum(1, keepdim=True)
    return (duals + rate * (fewest * even - share)).clamp_min(0) * is_centre


def discrimination_loss(
    cosines: Tensor, labels: Tensor, is_centre: Tensor, temperature: float, label_weight: float
) -> Tensor:
    """Cross-entropy of each copy's softmax over the centres of a set, by its cosines (2B x S x K).

    The target is `label_weight` of the image's label (B x S), the rest what the other copy's
    softmax says, which has no gradient here.
    """
    if len(cosines) != 2 * len(labels) or not len(labels):
        raise ValueError(f"{len(labels)} labels are not of two copies in {len(cosines)} rows")
    logits = (cosines / temperature).masked_fill(~is_centre, ABSENT)
    surprise = -F.log_softmax(logits, dim=2)
    other = (-surprise.detach()).exp().roll(len(labels), dims=0)
    label = F.one_hot(labels, cosines.shape[2]).to(other.dtype).repeat(2, 1, 1)
    target = label_weight * label + (1 - label_weight) * other
    return (target * surprise).sum(2).mean()


def moved_centres(
    centres: Tensor,
    projected: Tensor,
    labels: Tensor,
    is_centre: Tensor,
    temperature: float,
    rate: float,
) -> Tensor:
    """S x K x D of unit length: a step towards the copies (2B x D) of their images, the further
    the less sure the softmax is of them.

    It is the gradient of the cross-entropy through the logit of the label alone. That of the
    others, which would push centres away from all other images, is what makes such a loss
    unstable.
    """
    cosines = torch.einsum("bd,skd->bsk", projected, centres)
    sure = torch.softmax((cosines / temperature).masked_fill(~is_centre, ABSENT), dim=2)
    own = F.one_hot(labels, centres.shape[1]).to(sure.dtype).repeat(2, 1, 1)
    # By a product instead of sums by index, whose order a GPU does not keep.
    step = torch.einsum("bsk,bd->skd", own * (1 - sure), projected) / (len(projected) * temperature)
    return F.normalize(centres + rate * step, dim=2)
