"""The one place where bytes become pixels in [0, 1]."""

import torch
from torch import Tensor

from dcdc.errors import InputError


def to_float(images: Tensor) -> Tensor:
    """Float32 in [0, 1]: uint8 is divided by 255, floats are taken as they are."""
    if images.dtype == torch.uint8:
        return images.float().div_(255)
    if not images.is_floating_point():
        raise InputError(f"images are {images.dtype}: give uint8, or floats in [0, 1]")
    return images.float()
