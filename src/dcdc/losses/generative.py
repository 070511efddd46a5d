"""Losses of networks that make images: reconstruction, variational codes, adversaries. B images."""

from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import at_least_float32


def reconstruction_loss(reconstructed: Tensor, images: Tensor) -> Tensor:
    """Half the squared error of an image, summed over its pixels, in the mean over the batch: the
    surprise under Gaussians of deviation 1, up to a constant."""
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
    """The surprise at made images taken for real: steep where the discriminator is not fooled."""
    return F.softplus(-at_least_float32(made)).mean()
