"""The trunk's 2x2 max-pool with padding 1: windows do not overlap, so a kernel of our own is small.

PyTorch's channels-last backward pass looks every window up by its index; here each window reads its
four pixels once more and sends the gradient to the first largest, as PyTorch does.
"""

from functools import cache
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class HalvingPool(nn.Module):
    """B x C x H x W -> B x C x H // 2 + 1 x W // 2 + 1."""

    def forward(self, x: Tensor) -> Tensor:
        kernel = _kernel() if x.is_cuda and x.requires_grad else None
        if kernel is not None and x.is_contiguous(memory_format=torch.channels_last):
            out: Tensor = kernel.halving_pool(x)
            return out
        return F.max_pool2d(x, kernel_size=2, stride=2, padding=1)


@cache
def _kernel() -> ModuleType | None:
    try:
        from dcdc.networks import halving_pool_kernel
    except ImportError:  # no Triton here
        return None
    return halving_pool_kernel
