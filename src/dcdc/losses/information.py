"""The loss of IIC: how much the assignment of an image says about that of its perturbed copy.

Ji, Henriques and Vedaldi, Invariant Information Clustering, 2019. Shapes: B images, r perturbed
copies of each, K clusters.
"""

import torch
from torch import Tensor

from dcdc.losses.affinity import paired_assignments
from dcdc.losses.dcdc import DcdcLoss


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
