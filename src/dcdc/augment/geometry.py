"""Random places: flip, affine motion, and crops that are resized, as torchvision has them.

B images (1 in a matrix: the same for all), C channels, H x W pixels in, h x w pixels out. A crop is
a product with one matrix per axis; a box is top, left, height, width.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dcdc.augment.kernels import kernels_on

ATTEMPTS = 10  # at a random box that fits


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator) -> Tensor:
    """Uniform in [low, high), on the generator's device."""
    return torch.empty(shape, device=generator.device).uniform_(low, high, generator=generator)


def axis_weights(start: Tensor, length: Tensor, n_in: int, n_out: int) -> Tensor:
    """B x out x in: crop pixels start to start + length (both B), then resize them to n_out.

    Antialiased as PIL does it: a triangle of one pixel each way, on the coarser of the grids.
    """
    start, length = start[:, None, None], length[:, None, None]
    target = torch.arange(n_out, device=start.device)[:, None] + 0.5  # out x 1, pixel centres
    source = torch.arange(n_in, device=start.device) + 0.5 - start  # B x 1 x in
    inside = (source > 0) & (source < length)
    # In place from here: fresh B x out x in tensors made this five times slower on the CPU.
    # length * target is exact, so a weight is only as far off as one division rounds.
    weights = (source - length * target / n_out).abs_().div_((length / n_out).clamp(min=1))
    weights = weights.neg_().add_(1).clamp_(min=0).mul_(inside)
    # Dividing by the sum is what clamps at the crop's border: taps outside it have no weight.
    return weights.div_(weights.sum(-1, keepdim=True))


def resample(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """B x C x h x w from row weights B x h x H and column weights B x w x W."""
    # Measured, weights included (256 RGB images, out = in, one CPU thread, torch 2.13): at
    # 8 / 32 / 96 pixels a two-tap gather takes 1.2 / 2.7 / 1.8 times as long as this, and
    # grid_sample 0.5 / 0.6 / 0.4 times; but neither can antialias, and this is one path for all.
    return torch.einsum("bih,bchj->bcij", rows, torch.einsum("bchw,bjw->bchj", images, columns))


def draw_flip(n: int, p: float, generator: Generator) -> Tensor:
    """B: which images are mirrored."""
    return torch.rand(n, generator=generator, device=generator.device) < p


def apply_flip(images: Tensor, chosen: Tensor) -> Tensor:
    """The chosen images (B) with left and right exchanged."""
    return torch.where(chosen[:, None, None, None], images.flip(-1), images)


class Affine(NamedTuple):
    """B each: degrees clockwise, whole pixels right and down, factor, degrees along x."""

    angle: Tensor
    right: Tensor
    down: Tensor
    scale: Tensor
    shear: Tensor


def draw_affine(
    n: int,
    height: int,
    width: int,
    rotation: float,
    shift: float,
    scale: tuple[float, float],
    shear: float,
    generator: Generator,
) -> Affine:
    """Uniform draws: +-rotation and +-shear degrees, +-shift of the side, scale within its pair."""
    return Affine(
        uniform((n,), -rotation, rotation, generator),
        uniform((n,), -shift * width, shift * width, generator).round_(),
        uniform((n,), -shift * height, shift * height, generator).round_(),
        uniform((n,), *scale, generator),
        uniform((n,), -shear, shear, generator),
    )


def apply_affine(images: Tensor, draw: Affine, fill: float | None = None) -> Tensor:
    """Turn, shear, scale and shift each image about its centre; None leaves zeros outside."""
    height, width = images.shape[-2:]
    angle, right, down, scale, shear = (value[:, None, None] for value in draw)  # B x 1 x 1
    cos, sin, tan = angle.deg2rad().cos(), angle.deg2rad().sin(), shear.deg2rad().tan()
    x = torch.arange(width, device=images.device) - (width - 1) / 2 - right  # B x 1 x W
    y = torch.arange(height, device=images.device)[:, None] - (height - 1) / 2 - down  # B x H x 1
    # The inverse map, from target to source: rotation * shear has determinant 1.
    source_x = ((cos - sin * tan) * x + (cos * tan + sin) * y) / scale
    source_y = (cos * y - sin * x) / scale
    grid = torch.stack((source_x * (2 / width), source_y * (2 / height)), -1)  # B x H x W x 2
    if fill is None:
        return F.grid_sample(images, grid, align_corners=False)
    # torchvision's border: the image, already faded to zero, is faded once more into the fill.
    padded = F.pad(images, (0, 0, 0, 0, 0, 1), value=1.0)  # a channel of ones: the coverage
    sampled = F.grid_sample(padded, grid, align_corners=False)
    return torch.lerp(sampled.new_full((), fill), sampled[:, :-1], sampled[:, -1:])


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
