"""Crop a random box, resize it: torchvision's RandomResizedCrop for a batch.

B images, A attempts; a box is top, left, height, width
"""

import math

import torch
from torch import Generator, Tensor

from dcdc.augment.resample import axis_weights, resample
from dcdc.augment.uniform import uniform

ATTEMPTS = 10


def draw_resized_crop(
    n: int,
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: Generator,
) -> Tensor:
    """B x 4: the first attempt that fits, and the largest centred box where none does."""
    area = uniform((n, ATTEMPTS), *scale, generator).mul_(height * width)
    aspect = uniform((n, ATTEMPTS), math.log(ratio[0]), math.log(ratio[1]), generator).exp_()
    sides = torch.stack(((area / aspect).sqrt().round(), (area * aspect).sqrt().round()))
    fits = (sides[0] > 0) & (sides[0] <= height) & (sides[1] > 0) & (sides[1] <= width)  # B x A
    found = fits.any(1)
    first = fits.int().argmax(1, keepdim=True)  # argmax gives the first of equals
    place = torch.rand((2, n), generator=generator, device=generator.device)

    corners, lengths = [], []
    for axis, (limit, fallback) in enumerate(_centred_sides(height, width, ratio)):
        length = sides[axis].gather(1, first).squeeze(1).masked_fill(~found, fallback)
        # place < 1 in 24 bits, so the product never rounds up to limit - length + 1.
        corner = (place[axis] * (limit - length + 1)).floor()
        corners.append(corner.masked_fill(~found, (limit - fallback) // 2))
        lengths.append(length)
    return torch.stack((*corners, *lengths), 1).long()


def apply_resized_crop(images: Tensor, boxes: Tensor, height: int, width: int) -> Tensor:
    """Each image's box (B x 4), resized to height x width."""
    tops, lefts, heights, widths = boxes.unbind(1)
    rows = axis_weights(tops, heights, images.shape[2], height)
    columns = axis_weights(lefts, widths, images.shape[3], width)
    return resample(images, rows, columns)


def _centred_sides(
    height: int, width: int, ratio: tuple[float, float]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """(limit, side) per axis of the largest box whose width / height is within ratio."""
    if width / height < ratio[0]:
        return (height, round(width / ratio[0])), (width, width)
    if width / height > ratio[1]:
        return (height, height), (width, round(height * ratio[1]))
    return (height, height), (width, width)
