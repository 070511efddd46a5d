"""Losses of heads over stored features: TEMI's and TURTLE's.

Shapes: H heads, B images, K clusters, S feature spaces. Rows of assignments sum to 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

_SMALLEST = 1e-12


def agreement(teacher: Tensor, teacher_partner: Tensor) -> Tensor:
    """B: how likely an image and its partner have the same cluster, by the mean of all heads."""
    return (teacher * teacher_partner).sum(dim=2).mean(dim=0)


def pointwise_information(student: Tensor, teacher: Tensor, shares: Tensor, beta: float) -> Tensor:
    """H x B: log of the sum over clusters of (student x teacher)^beta / share; `shares` is H x K.

    At beta 1 it is the pointwise mutual information of the pair; below, rare clusters are kept.
    """
    together = (student * teacher).clamp_min(_SMALLEST) ** beta
    return (together / shares.clamp_min(_SMALLEST)[:, None]).sum(dim=2).log()


def temi_loss(
    students: tuple[Tensor, Tensor],
    teachers: tuple[Tensor, Tensor],
    shares: Tensor,
    beta: float,
) -> Tensor:
    """H, of the assignments of images and of their partners: each one's student learns from the
    other's teacher, the more the surer the teachers are that both belong together."""
    weights = agreement(*teachers)
    there = pointwise_information(students[0], teachers[1], shares, beta)
    back = pointwise_information(students[1], teachers[0], shares, beta)
    return -(weights * (there + back) / 2).mean(dim=1)


def soft_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of B x K logits against B x K shares, mean over images."""
    return -(labels * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def spread_entropy(labels: Tensor) -> Tensor:
    """Entropy of the mean assignment of B x K: log K where clusters are filled evenly."""
    entropies: Tensor = torch.special.entr(labels.mean(dim=0))
    return entropies.sum()


def turtle_loss(
    logits: Sequence[Tensor], labels: Sequence[Tensor], entropy_weight: float
) -> Tensor:
    """How badly the S linear classifiers fit the labelling, which is the mean of the spaces' own
    labels, less the entropy of each space's mean label."""
    labelling = torch.stack(list(labels)).mean(dim=0)
    error = torch.stack([soft_cross_entropy(each, labelling) for each in logits]).sum()
    entropy = torch.stack([spread_entropy(each) for each in labels]).sum()
    return error - entropy_weight * entropy
