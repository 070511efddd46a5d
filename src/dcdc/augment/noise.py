"""Additive Gaussian noise.

B images, C channels, H x W pixels
"""

import torch
from torch import Generator, Tensor


def draw_noise(shape: tuple[int, ...], std: float, generator: Generator) -> Tensor:
    """A normal value for every pixel of every channel."""
    return torch.randn(shape, generator=generator, device=generator.device).mul_(std)


def apply_noise(images: Tensor, noise: Tensor) -> Tensor:
    """Both B x C x H x W; the sum is clamped to [0, 1]."""
    return (images + noise).clamp_(0, 1)
