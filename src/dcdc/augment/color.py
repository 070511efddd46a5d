"""Values of pixels: bytes to floats, noise, grey, and torchvision's ColorJitter in random order.

B images, C channels, H x W pixels, n blends that are on
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dcdc.augment.geometry import uniform
from dcdc.errors import InputError


def to_float(images: Tensor) -> Tensor:
    """Float32 in [0, 1]: uint8 is divided by 255, floats are taken as they are."""
    if images.dtype == torch.uint8:
        return images.float().div_(255)
    if not images.is_floating_point():
        raise InputError(f"images are {images.dtype}: give uint8, or floats in [0, 1]")
    return images.float()


def draw_noise(shape: tuple[int, ...], std: float, generator: Generator) -> Tensor:
    """A normal value for every pixel of every channel."""
    return torch.randn(shape, generator=generator, device=generator.device).mul_(std)


def apply_noise(images: Tensor, noise: Tensor) -> Tensor:
    """Both B x C x H x W; the sum is clamped to [0, 1]."""
    return (images + noise).clamp_(0, 1)


def draw_grey(n: int, p: float, generator: Generator) -> Tensor:
    """B: which images lose their colour."""
    return torch.rand(n, generator=generator, device=generator.device) < p


def apply_grey(images: Tensor, chosen: Tensor) -> Tensor:
    """The chosen images (B) in grey, with as many channels as before."""
    return torch.where(chosen[:, None, None, None], luminance(images), images)


def luminance(images: Tensor) -> Tensor:
    """B x 1 x H x W with torchvision's weights, which sum to .9999."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(1)
    return (red * 0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114)[:, None]


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn the colour circle of each image by its shift (B), in turns."""
    red, green, blue = images.unbind(1)
    low, high = images.aminmax(dim=1)  # B x H x W
    span = high - low
    divisor = span.masked_fill(span == 0, 1)  # grey has no hue, and span 0 hides whatever it gets
    hue = torch.where(
        high == red,
        (green - blue) / divisor,
        torch.where(high == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor),
    )
    # HSV back to RGB without a table: how far each channel's ramp is below the high.
    phase = torch.arange(5, 0, -2, device=images.device)[:, None, None]  # red 5, green 3, blue 1
    place = (hue[:, None] + 6 * shift[:, None, None, None] + phase) % 6
    return high[:, None] - span[:, None] * torch.minimum(place, 4 - place).clamp_(0, 1)


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
