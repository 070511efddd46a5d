"""What stands before the backbone: channel normalisation and the fixed Sobel filter.

Shapes: B images, C channels (1 or 3), H x W pixels in [0, 1].
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Normalise(nn.Module):
    """Subtracts a mean and divides by a deviation per channel."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        if len(mean) != len(std) or any(not value > 0 for value in std):
            raise ValueError(f"need one mean and one positive std per channel, got {mean}, {std}")
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std


class Sobel(nn.Module):
    """Grey as the plain mean of the channels, then its horizontal and vertical Sobel edges."""

    out_channels = 2

    def __init__(self) -> None:
        super().__init__()
        across = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
        self.kernels: Tensor
        self.register_buffer("kernels", torch.stack([across, across.T]).unsqueeze(1))

    def forward(self, images: Tensor) -> Tensor:
        return F.conv2d(images.mean(dim=1, keepdim=True), self.kernels, padding=1)


def front(images: Tensor, normalise: Normalise, sobel: Sobel | None) -> Tensor:
    """What the backbone reads, in any layout, in full precision: under autocast a convolution would
    round the grey image before it takes its edges."""
    with torch.autocast(images.device.type, enabled=False):
        x: Tensor = normalise(images)
        return x if sobel is None else sobel(x)
