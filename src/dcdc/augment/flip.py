"""Random horizontal flip.

B images
"""

import torch
from torch import Generator, Tensor


def draw_flip(n: int, p: float, generator: Generator) -> Tensor:
    """B: which images are mirrored."""
    return torch.rand(n, generator=generator, device=generator.device) < p


def apply_flip(images: Tensor, chosen: Tensor) -> Tensor:
    """The chosen images (B) with left and right exchanged."""
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)
