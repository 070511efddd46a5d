"""Losses by which sure assignments teach unsure ones: self-labels, and DEC's sharpened targets.

Shapes: B images, r perturbed copies of each, D numbers of a code, K clusters.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import at_least_float32, paired_assignments


def self_label_loss(
    assign: Tensor, assign_perturbed: Tensor, threshold: float
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the perturbed rows with the arg-max of the originals above `threshold`, and
    how many originals are above it.

    Every cluster with a sure image weighs the same, so that large clusters do not grow. No sure
    image: zero.
    """
    original, perturbed = paired_assignments(assign.detach(), assign_perturbed)
    share, label = original.max(dim=1)
    sure = at_least_float32(share > threshold)
    tiny = torch.finfo(perturbed.dtype).tiny
    surprise = F.nll_loss(perturbed.clamp_min(tiny).log(), label, reduction="none")
    # By products instead of sums by index, whose order a GPU does not keep.
    by_cluster = sure[:, None] * F.one_hot(label, assign.shape[1])  # rB x K
    counts = by_cluster.sum(0)
    n_clusters = (counts > 0).sum().clamp_min(1)
    loss = ((surprise[:, None] * by_cluster).sum(0) / counts.clamp_min(1)).sum() / n_clusters
    return loss, sure[: len(assign)].sum()


def student_assignment(codes: Tensor, centres: Tensor) -> Tensor:
    """DEC (Xie, Girshick and Farhadi, 2016). B x K, rows sum to 1: 1 / (1 + squared distance) of
    each code (B x D) to each centre (K x D), shared out. Student's t with one degree of freedom,
    whose long tails let far codes move."""
    codes, centres = at_least_float32(codes), at_least_float32(centres)
    squared = (codes[:, None] - centres[None]).square().sum(2)
    closeness = 1 / (1 + squared)
    return closeness / closeness.sum(1, keepdim=True)


def sharpened_target(assign: Tensor) -> Tensor:
    """B x K: squared and divided by the cluster's size, so that the sure teach the unsure and large
    clusters do not grow; without a gradient."""
    assign = at_least_float32(assign.detach())
    weight = assign.square() / assign.sum(0).clamp_min(torch.finfo(assign.dtype).tiny)
    return weight / weight.sum(1, keepdim=True)


def target_divergence(target: Tensor, assign: Tensor) -> Tensor:
    """KL(target || assign), mean over images: 0 where they agree."""
    tiny = torch.finfo(assign.dtype).tiny
    logs = target.clamp_min(tiny).log() - assign.clamp_min(tiny).log()
    return (target * logs).sum(1).mean()
