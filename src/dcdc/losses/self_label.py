"""Self-labelling: the sure answers for the original copies teach the perturbed ones.

Shapes: B images, r perturbed copies of each, K clusters.
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
