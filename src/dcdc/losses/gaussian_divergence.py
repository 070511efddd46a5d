"""How much a variational code says: its divergence from the standard Gaussian. B images."""

from torch import Tensor

from dcdc.losses.affinity import at_least_float32


def gaussian_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, variance) || N(0, 1)), summed over the code (B x D each), mean over the batch."""
    mean, log_variance = at_least_float32(mean), at_least_float32(log_variance)
    each = (mean.square() + log_variance.exp() - 1 - log_variance) / 2
    return each.sum(1).mean()
