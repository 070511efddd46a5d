"""DEC's parts: soft assignments by Student's t, their sharpened targets, and how far they are.

Xie, Girshick and Farhadi, Unsupervised deep embedding for clustering analysis, 2016.
Shapes: B images, D numbers of a code, K clusters.
"""

import torch
from torch import Tensor

from dcdc.losses.affinity import at_least_float32


def student_assignment(codes: Tensor, centres: Tensor) -> Tensor:
    """B x K, rows sum to 1: 1 / (1 + squared distance) of each code (B x D) to each centre (K x D),
    shared out. Student's t with one degree of freedom, whose long tails let far codes move."""
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
