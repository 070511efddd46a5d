"""Where kernels do the work of the ops: on CUDA devices, if Triton can build them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

_DEVICE = "cuda"


@dataclass(frozen=True)
class Kernels:
    fits: Callable[[Tensor], bool]
    original_copies: Callable[..., Tensor]
    perturbed_copies: Callable[..., Tensor]
    fitting_boxes: Callable[..., Tensor]


def kernels_on(device: torch.device) -> Kernels | None:
    return _kernels() if device.type == _DEVICE else None


@cache
def _kernels() -> Kernels | None:
    """None where Triton is absent or cannot build; imported late, since the CPU never needs it."""
    try:
        from dcdc.augment import copy_kernel
    except ImportError:
        return None
    if not copy_kernel.is_available():
        return None
    return Kernels(
        copy_kernel.fits,
        copy_kernel.original_copies,
        copy_kernel.perturbed_copies,
        copy_kernel.fitting_boxes,
    )
