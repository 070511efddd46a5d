"""Brightness, contrast, saturation and hue in random order: torchvision's ColorJitter.

B images, H x W pixels, n blends that are on
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dcdc.augment.grey import luminance
from dcdc.augment.hue import shift_hue
from dcdc.augment.uniform import uniform


class Jitter(NamedTuple):
    """Factors (B; None is off) and B x 4 times: each image's ops run in ascending order."""

    brightness: Tensor | None
    contrast: Tensor | None
    saturation: Tensor | None
    hue: Tensor | None
    when: Tensor


def draw_jitter(
    n: int,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    generator: Generator,
) -> Jitter:
    """Factors uniform in [max(0, 1 - s), 1 + s] (hue: [-s, s]) for strength s; 0 is off."""

    def factor(strength: float) -> Tensor | None:
        return uniform((n,), max(0, 1 - strength), 1 + strength, generator) if strength else None

    return Jitter(
        factor(brightness),
        factor(contrast),
        factor(saturation),
        uniform((n,), -hue, hue, generator) if hue else None,
        uniform((n, 4), 0, 1, generator),
    )


def apply_jitter(images: Tensor, jitter: Jitter) -> Tensor:
    """Every image through its own factors in its own order; one channel has no colour to change.

    All ops but the hue are blends with another image, so any order is at most n blends,
    one hue for all, and n blends; an image sits out a blend by the factor 1.
    """
    blends = {"brightness": jitter.brightness, "contrast": jitter.contrast}
    hue = None
    if images.shape[1] == 3:
        blends["saturation"], hue = jitter.saturation, jitter.hue
    factors = {name: factor for name, factor in blends.items() if factor is not None}
    if not factors:
        return images if hue is None else shift_hue(images, hue)

    names = list(factors)
    when = torch.stack([jitter.when[:, Jitter._fields.index(name)] for name in names], 1)
    order = when.argsort(1)  # B x n: which blend is an image's first, second, ...
    amounts = torch.stack(list(factors.values()), 1).gather(1, order)
    if hue is not None:
        n_before = (when < jitter.when[:, 3:]).sum(1, keepdim=True)
        late = torch.arange(len(names), device=when.device) >= n_before  # B x n
        images = _blend(images, names, order, amounts.masked_fill(late, 1))
        images = shift_hue(images, hue)
        amounts = amounts.masked_fill(~late, 1)
    return _blend(images, names, order, amounts)


def _blend(images: Tensor, names: list[str], order: Tensor, amounts: Tensor) -> Tensor:
    """n times clamp(amount * image + (1 - amount) * other); order and amounts are B x n."""
    for k in range(len(names)):
        other = _other(images, names, order[:, k, None, None, None])
        images = torch.lerp(other, images, amounts[:, k, None, None, None]).clamp_(0, 1)
    return images


def _other(images: Tensor, names: list[str], chosen: Tensor) -> Tensor:
    """What the blend names[chosen] mixes in: black, the mean grey, or the image in grey."""
    other = images.new_zeros(())
    if names == ["brightness"]:
        return other
    grey = luminance(images)
    if "contrast" in names:
        mean = grey.mean((2, 3), keepdim=True)
        other = torch.where(chosen == names.index("contrast"), mean, other)
    if "saturation" in names:
        other = torch.where(chosen == names.index("saturation"), grey, other)
    return other
