"""Strong copies: some of RandAugment's operations, then a hole. The image is never cropped.

Cubuk et al., RandAugment, 2020, with the fourteen operations and their ranges of FixMatch (Sohn et
al., 2020); each copy has some that differ, each with a strength of its own, as in SCAN (Van
Gansbeke et al., 2020). The hole is Cutout (DeVries and Taylor, 2017), grey and of any size up to
half of the side.

B images, r repeats, n operations of a copy, C channels, H x W pixels
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from dcdc.augment.color import luminance, to_float
from dcdc.augment.geometry import apply_flip, draw_flip
from dcdc.augment.pipeline import rows_of_copies

MOVED = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")
DEGREES, SHARE = 30.0, 0.3
"""How far at most: turned, and sheared or shifted by a share of the side."""
WEAKEST, STRONGEST = 0.05, 0.95
"""What is left of an image beside what it is mixed with."""
FEWEST_BITS, MOST_BITS = 4, 8
LARGEST_HOLE = 0.5
"""Of the side."""


class StrongDraw(NamedTuple):
    operations: Tensor
    """rB x n: numbers of operations."""
    strengths: Tensor
    """rB x n, from 0 to 1."""
    hole: Tensor
    """rB x 3, from 0 to 1: its centre, down and right, and its size."""
    flip: Tensor
    """rB: which are mirrored."""


class StrongCopy:
    """Draws and applies as PerturbedCopy does."""

    def __init__(self, *, n_repeats: int = 1, flip: float = 0.5, n_operations: int = 4) -> None:
        self.n_repeats, self.flip, self.n_operations = n_repeats, flip, n_operations

    def draw(self, images: Tensor, generator: Generator) -> StrongDraw:
        n = len(images) * self.n_repeats

        def uniform(width: int) -> Tensor:
            return torch.rand((n, width), generator=generator, device=generator.device)

        return StrongDraw(
            uniform(len(OPERATIONS)).argsort(1)[:, : self.n_operations],
            uniform(self.n_operations),
            uniform(3),
            draw_flip(n, self.flip, generator),
        )

    def part(self, draw: StrongDraw, rows: slice) -> StrongDraw:
        """Of a draw for B images, what all copies of some of them need."""
        return StrongDraw(*(rows_of_copies(values, self.n_repeats, rows) for values in draw))

    def has_kernel(self, device: torch.device) -> bool:  # noqa: ARG002
        return False

    def apply(self, images: Tensor, draw: StrongDraw) -> Tensor:
        """rB x C x H x W in [0, 1]: copy 1 of every image, then copy 2 of every image, ..."""
        images = apply_flip(to_float(images).repeat(self.n_repeats, 1, 1, 1), draw.flip)
        for number in range(self.n_operations):
            images = operate(images, draw.operations[:, number], draw.strengths[:, number])
        return punch(images, draw.hole)


def operate(images: Tensor, operations: Tensor, strengths: Tensor) -> Tensor:
    """Each image (B x C x H x W) by the operation of its number (B), with its strength (B).

    All are carried out on all images: which ones are needed, only the device knows.
    """
    found, strength = images, strengths[:, None, None, None]
    for number, name in enumerate(OPERATIONS):
        if name in _RECOLOURED:
            is_asked = (operations == number)[:, None, None, None]
            found = torch.where(is_asked, _RECOLOURED[name](images, strength), found)
    of_name = {name: operations == OPERATIONS.index(name) for name in MOVED}
    is_moved = torch.stack(list(of_name.values())).any(0)[:, None, None, None]
    return torch.where(is_moved, _move(images, of_name, 2 * strengths - 1), found)


def punch(images: Tensor, hole: Tensor) -> Tensor:
    """With a grey square (B x 3: centre and size, from 0 to 1), which may reach beyond the edge."""
    height, width = images.shape[-2:]
    reach = hole[:, 2, None] * LARGEST_HOLE / 2
    rows, columns = (
        ((torch.arange(n, device=images.device) + 0.5) / n - hole[:, axis, None]).abs() < reach
        for axis, n in enumerate((height, width))
    )
    return images.masked_fill((rows[:, :, None] & columns[:, None])[:, None], 0.5)


def _move(images: Tensor, is_asked: dict[str, Tensor], amount: Tensor) -> Tensor:
    """About the centre, by `amount` (B, from -1 to 1) of the furthest; black comes in."""
    angle = torch.deg2rad(DEGREES * amount) * is_asked["rotate"]
    share = SHARE * amount
    # The inverse map, from target to source, in units of half a side.
    theta = torch.stack(
        (
            torch.stack(
                (
                    angle.cos(),
                    angle.sin() + share * is_asked["shear-x"],
                    2 * share * is_asked["translate-x"],
                ),
                dim=1,
            ),
            torch.stack(
                (
                    share * is_asked["shear-y"] - angle.sin(),
                    angle.cos(),
                    2 * share * is_asked["translate-y"],
                ),
                dim=1,
            ),
        ),
        dim=1,
    )
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def _autocontrast(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Each channel from its darkest to its brightest pixel, stretched to all of [0, 1]."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    span = high - low
    return torch.where(span > 0, (images - low) / span.clamp_min(1e-6), images)


def _equalise(images: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001
    """Each channel's values by how many of its pixels are darker: all about as frequent."""
    values = images.flatten(2).contiguous()
    n_darker = torch.searchsorted(values.sort(dim=2).values, values).float()
    most = n_darker.amax(2, keepdim=True)
    return torch.where(most > 0, n_darker / most.clamp_min(1), values).view_as(images)


def _solarise(images: Tensor, strength: Tensor) -> Tensor:
    """What is brighter than a threshold is inverted."""
    return torch.where(images < strength, images, 1 - images)


def _posterise(images: Tensor, strength: Tensor) -> Tensor:
    """Only the first bits of each value."""
    n_bits = (FEWEST_BITS + strength * (MOST_BITS - FEWEST_BITS + 1)).floor().clamp_max(MOST_BITS)
    step = torch.exp2(MOST_BITS - n_bits)
    return ((images * 255).round() / step).floor() * step / 255


def _mixed_with(other: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def mixed(images: Tensor, strength: Tensor) -> Tensor:
        kept = WEAKEST + (STRONGEST - WEAKEST) * strength
        return torch.lerp(other(images).expand_as(images), images, kept)

    return mixed


def _black(images: Tensor) -> Tensor:
    return images.new_zeros((1, 1, 1, 1))


def _mean_grey(images: Tensor) -> Tensor:
    return luminance(images).mean((2, 3), keepdim=True)


def _smoothed(images: Tensor) -> Tensor:
    """By the filter 1 1 1, 1 5 1, 1 1 1; the border stays."""
    inner = 9 * F.avg_pool2d(images, 3, stride=1) + 4 * images[..., 1:-1, 1:-1]
    found = images.clone()
    found[..., 1:-1, 1:-1] = inner / 13
    return found


_RECOLOURED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "autocontrast": _autocontrast,
    "equalise": _equalise,
    "solarise": _solarise,
    "posterise": _posterise,
    "colour": _mixed_with(luminance),
    "contrast": _mixed_with(_mean_grey),
    "brightness": _mixed_with(_black),
    "sharpness": _mixed_with(_smoothed),
}
OPERATIONS = ("identity", *_RECOLOURED, *MOVED)
