"""Losses of autoencoders and adversaries: reconstruction, variational codes, DEC's, DCGAN's.

Shapes: B images, D numbers of a code, K clusters.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.heads import at_least_float32


def reconstruction_loss(reconstructed: Tensor, images: Tensor) -> Tensor:
    """Half the squared error of an image, summed over its pixels, in the mean over the batch: the
    negative log-likelihood under Gaussians of deviation 1, up to a constant."""
    if reconstructed.shape != images.shape:
        raise ValueError(
            f"images of {tuple(images.shape)} were reconstructed as {tuple(reconstructed.shape)}"
        )
    error = at_least_float32(reconstructed) - at_least_float32(images)
    return error.square().flatten(1).sum(1).mean() / 2


def gaussian_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)), summed over the code (B x D each), mean over the batch."""
    mean, log_variance = at_least_float32(mean), at_least_float32(log_variance)
    each = (mean.square() + log_variance.exp() - 1 - log_variance) / 2
    return each.sum(1).mean()


def discriminator_loss(real: Tensor, made: Tensor) -> Tensor:
    """The cross-entropy of telling images from made ones, mean over both."""
    real, made = at_least_float32(real), at_least_float32(made)
    return (F.softplus(-real).mean() + F.softplus(made).mean()) / 2


def generator_loss(made: Tensor) -> Tensor:
    """The cross-entropy of taking made images for real (Goodfellow et al., 2014, non-saturating):
    steep where the discriminator is right."""
    return F.softplus(-at_least_float32(made)).mean()


def student_assignment(codes: Tensor, centres: Tensor) -> Tensor:
    """DEC (Xie, Girshick and Farhadi, 2016). B x K, rows sum to 1: 1 / (1 + squared distance) of
    each code (B x D) to each centre (K x D), shared out. Student's t with one degree of freedom,
    whose long tails let far codes move."""
    codes, centres = at_least_float32(codes), at_least_float32(centres)
    squared = (codes[:, None] - centres[None]).square().sum(2)
    closeness = 1 / (1 + squared)
    return closeness / closeness.sum(1, keepdim=True)


def sharpened_target(assign: Tensor) -> Tensor:
    """B x K: squared and divided by the cluster's size, so that confident rows become more so and
    large clusters do not grow; without a gradient."""
    assign = at_least_float32(assign.detach())
    weight = assign.square() / assign.sum(0).clamp_min(torch.finfo(assign.dtype).tiny)
    return weight / weight.sum(1, keepdim=True)


def target_divergence(target: Tensor, assign: Tensor) -> Tensor:
    """KL(target || assign), mean over images: 0 where they agree."""
    tiny = torch.finfo(assign.dtype).tiny
    logs = target.clamp_min(tiny).log() - assign.clamp_min(tiny).log()
    return (target * logs).sum(1).mean()
