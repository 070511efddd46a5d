"""Random rotation, shift, scale and shear: torchvision's RandomAffine, bilinear.

B images, H x W pixels; coordinates are pixels from the image's centre
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dcdc.augment.uniform import uniform


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
