"""The two sides of a generative adversarial network, by the logits of its discriminator.

Goodfellow et al., Generative adversarial nets, 2014. Shapes: B images, a logit for each.
"""

from torch import Tensor
from torch.nn import functional as F

from dcdc.losses.affinity import at_least_float32


def discriminator_loss(real: Tensor, made: Tensor) -> Tensor:
    """The cross-entropy of telling images from made ones, mean over both."""
    real, made = at_least_float32(real), at_least_float32(made)
    return (F.softplus(-real).mean() + F.softplus(made).mean()) / 2


def generator_loss(made: Tensor) -> Tensor:
    """The surprise at made images taken for real: steep where the discriminator is not fooled."""
    return F.softplus(-at_least_float32(made)).mean()
