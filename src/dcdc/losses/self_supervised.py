"""Losses of the phases besides the heads': contrast (SimCLR, CC), prediction (BYOL), self-labels.

Shapes: B images, r perturbed copies of each, D numbers of a projection, K clusters.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.heads import EMPTY, at_least_float32, paired_assignments


def nt_xent_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent of SimCLR (Chen et al., 2020): each of the 2B copies (two of B x D) finds the other
    one of its image among all copies of the batch, by cosine."""
    if first.shape != second.shape or first.ndim != 2 or not len(first):
        raise ValueError(
            f"two copies need the same shape (images x numbers, an image at least), got "
            f"{tuple(first.shape)} and {tuple(second.shape)}"
        )
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    with torch.autocast(first.device.type, enabled=False):
        rows = F.normalize(at_least_float32(torch.cat([first, second])), dim=1, eps=EMPTY)
        logits = rows @ rows.T / temperature
    place = torch.arange(len(rows), device=rows.device)
    itself = place[:, None] == place
    other_copy = (place + len(first)) % len(rows)
    return F.cross_entropy(logits.masked_fill(itself, -torch.inf), other_copy)


def column_contrast_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent over the columns of two copies' assignments (B x K each): CC (Li et al., 2021). Each
    of the 2K columns finds that of the same cluster over the other copies among all columns."""
    return nt_xent_loss(first.T, second.T, temperature)


def byol_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """BYOL (Grill et al., 2020): squared distance of directions, 0 to 4, of each of the 2B copies'
    prediction (2B x D, first one copy of every image, then the other) and the other copy's target,
    which has no gradient."""
    if predicted.shape != target.shape or predicted.ndim != 2 or not len(target) or len(target) % 2:
        raise ValueError(
            f"predictions and targets need the same shape (two copies of each image x numbers), "
            f"got {tuple(predicted.shape)} and {tuple(target.shape)}"
        )
    with torch.autocast(predicted.device.type, enabled=False):
        rows = F.normalize(at_least_float32(predicted), dim=1, eps=EMPTY)
        targets = F.normalize(at_least_float32(target.detach()), dim=1, eps=EMPTY)
    others = targets.roll(len(targets) // 2, dims=0)
    return 2 - 2 * (rows * others).sum(1).mean()


def self_label_loss(
    assign: Tensor, assign_perturbed: Tensor, threshold: float
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the perturbed rows with the arg-max of the originals above `threshold`, and
    how many originals are above it.

    Every cluster with a confident image weighs the same, so that large clusters do not grow. No
    confident image: zero.
    """
    original, perturbed = paired_assignments(assign.detach(), assign_perturbed)
    share, label = original.max(dim=1)
    confident = at_least_float32(share > threshold)
    tiny = torch.finfo(perturbed.dtype).tiny
    cross_entropy = F.nll_loss(perturbed.clamp_min(tiny).log(), label, reduction="none")
    # By products instead of sums by index, whose order a GPU does not keep.
    by_cluster = confident[:, None] * F.one_hot(label, assign.shape[1])  # rB x K
    counts = by_cluster.sum(0)
    n_clusters = (counts > 0).sum().clamp_min(1)
    loss = ((cross_entropy[:, None] * by_cluster).sum(0) / counts.clamp_min(1)).sum() / n_clusters
    return loss, confident[: len(assign)].sum()
