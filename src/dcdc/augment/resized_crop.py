"""Crop a random box, resize it: torchvision's RandomResizedCrop for a batch.

B images, A attempts; a box is top, left, height, width
"""

import math

import torch
from torch import Generator, Tensor

from dcdc.augment.kernels import kernels_on
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
    areas = uniform((n, ATTEMPTS), *scale, generator).mul_(height * width)
    aspects = uniform((n, ATTEMPTS), math.log(ratio[0]), math.log(ratio[1]), generator).exp_()
    places = torch.rand((2, n), generator=generator, device=generator.device)
    kernels = kernels_on(generator.device) if n else None
    boxes_of = fitting_boxes if kernels is None else kernels.fitting_boxes
    return boxes_of(areas, aspects, places, (height, width), _centred(height, width, ratio))


def fitting_boxes(
    areas: Tensor,
    aspects: Tensor,
    places: Tensor,
    limits: tuple[int, int],
    centred: tuple[int, int],
) -> Tensor:
    """B x 4 from areas, aspects (B x A) and places (2 x B); limits, centred: height and width."""
    sides = torch.stack(((areas / aspects).sqrt().round(), (areas * aspects).sqrt().round()))
    fits = (sides[0] > 0) & (sides[0] <= limits[0]) & (sides[1] > 0) & (sides[1] <= limits[1])
    found = fits.any(1)
    first = fits.int().argmax(1, keepdim=True)  # argmax gives the first of equals

    corners, lengths = [], []
    for axis, (limit, fallback) in enumerate(zip(limits, centred, strict=True)):
        length = sides[axis].gather(1, first).squeeze(1).masked_fill(~found, fallback)
        # A place < 1 in 24 bits, so the product never rounds up to limit - length + 1.
        corner = (places[axis] * (limit - length + 1)).floor()
        corners.append(corner.masked_fill(~found, (limit - fallback) // 2))
        lengths.append(length)
    return torch.stack((*corners, *lengths), 1).long()


def apply_resized_crop(images: Tensor, boxes: Tensor, height: int, width: int) -> Tensor:
    """Each image's box (B x 4), resized to height x width."""
    tops, lefts, heights, widths = boxes.unbind(1)
    rows = axis_weights(tops, heights, images.shape[2], height)
    columns = axis_weights(lefts, widths, images.shape[3], width)
    return resample(images, rows, columns)


def _centred(height: int, width: int, ratio: tuple[float, float]) -> tuple[int, int]:
    """Height and width of the largest box whose width / height is within ratio."""
    if width / height < ratio[0]:
        return round(width / ratio[0]), width
    if width / height > ratio[1]:
        return height, round(height * ratio[1])
    return height, width
