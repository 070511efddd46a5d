"""Resize to a larger square, crop back: the original copy's small shift.

B images, R pixels after the resize, s pixels after the crop
"""

import torch
from torch import Generator, Tensor

from dcdc.augment.resample import axis_weights, resample


def draw_resize_crop(n: int, resize_to: int, size: int, generator: Generator) -> Tensor:
    """B x 2: the crop's top and left, uniform over every place where it fits."""
    return torch.randint(
        0, resize_to - size + 1, (n, 2), generator=generator, device=generator.device
    )


def apply_resize_crop(images: Tensor, offsets: Tensor, resize_to: int, size: int) -> Tensor:
    """Resize to R x R and take s x s from each offset (B x 2, or 1 x 2 for all) in one resample."""
    wanted = offsets[..., None] + torch.arange(size, device=offsets.device)  # B x 2 x s
    rows, columns = (
        _resize_matrix(n_in, resize_to, offsets)[wanted[:, axis]]  # B x s x in
        for axis, n_in in enumerate(images.shape[-2:])
    )
    return resample(images, rows, columns)


def apply_centre_crop(images: Tensor, resize_to: int, size: int) -> Tensor:
    """The same from the centre, as torchvision's CenterCrop rounds it."""
    offsets = torch.full((1, 2), _centre(resize_to, size), device=images.device)
    return apply_resize_crop(images, offsets, resize_to, size)


def centre_crop_matrix(n_in: int, resize_to: int, size: int) -> Tensor:
    """s x in: what `apply_centre_crop` multiplies an axis of `n_in` pixels with."""
    first = _centre(resize_to, size)
    return _resize_matrix(n_in, resize_to, torch.zeros(0))[first : first + size]


def _centre(resize_to: int, size: int) -> int:
    return round((resize_to - size) / 2)


def _resize_matrix(n_in: int, n_out: int, like: Tensor) -> Tensor:
    return axis_weights(like.new_zeros(1), like.new_full((1,), n_in), n_in, n_out)[0]
