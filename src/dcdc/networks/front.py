"""What stands before the trunk: channel normalisation and the fixed Sobel filter.

Shapes: B images, C channels (1 or 3), H x W pixels in [0, 1].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_KERNEL_DEVICE = "cuda"


@dataclass(frozen=True)
class _Kernel:
    fits: Callable[[Tensor, Tensor, Tensor], bool]
    front: Callable[..., Tensor]


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
    """What the trunk reads, in any layout; by one kernel where there is one.

    Under autocast the kernel is the more exact: it rounds the edges alone, once, while a
    convolution in half precision rounds the grey image first. It also writes what the trunk would
    cast to.
    """
    kernel = _kernel() if images.device.type == _KERNEL_DEVICE else None
    if kernel is not None and kernel.fits(images, normalise.mean, normalise.std):
        edges, dtype = sobel is not None, _product_dtype(images)
        return kernel.front(images, normalise.mean, normalise.std, edges, dtype)
    x: Tensor = normalise(images)
    return x if sobel is None else sobel(x)


def _product_dtype(images: Tensor) -> torch.dtype:
    """What a convolution of these computes in."""
    kind = images.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else images.dtype


@cache
def _kernel() -> _Kernel | None:
    """None where Triton is absent or cannot build; imported late, since the CPU never needs it."""
    try:
        from dcdc.networks import front_kernel
    except ImportError:
        return None
    return _Kernel(front_kernel.fits, front_kernel.front) if front_kernel.is_available() else None
