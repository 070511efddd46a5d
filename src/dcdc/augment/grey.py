"""Random grey.

B images, C channels, H x W pixels
"""

import torch
from torch import Generator, Tensor


def draw_grey(n: int, p: float, generator: Generator) -> Tensor:
    """B: which images lose their colour."""
    return torch.rand(n, generator=generator, device=generator.device) < p


def apply_grey(images: Tensor, chosen: Tensor) -> Tensor:
    """The chosen images (B) in grey, with as many channels as before."""
    return torch.where(chosen[:, None, None, None], luminance(images), images)


def luminance(images: Tensor) -> Tensor:
    """B x 1 x H x W with torchvision's weights, which sum to .9999."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(1)
    return (red * 0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114)[:, None]
