"""The reference's copies of one image, drawn as torchvision draws them.

The draws come from Python's `random`, which takes less time than torchvision's from torch: the
reference is measured at no worse than it was.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from baselines import pil_operations as pil
from dcdc.augment.pipeline import CROP_RATIO

_CROP_ATTEMPTS = 10


@dataclass(frozen=True)
class PilCopies:
    """The original copy and r perturbed ones, each a normalised tensor; as AugmentConfig says."""

    size: int
    n_repeats: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize_to: int
    crop_scale: tuple[float, float] | None
    brightness: float
    contrast: float
    saturation: float
    hue: float
    grey: float
    flip: float
    rotation: float
    shift: float
    scale: tuple[float, float]
    shear: float
    noise: float

    def __call__(self, pixels: NDArray[np.uint8]) -> list[Tensor]:
        """From H x W x C to 1 + r of C x H x W."""
        image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        return [self.original(image), *(self.perturbed(image) for _ in range(self.n_repeats))]

    def original(self, image: pil.Picture) -> Tensor:
        if self.resize_to not in (0, self.size):
            image = pil.resize(image, self.resize_to)
            gap = self.resize_to - self.size
            corner = random.randint(0, gap), random.randint(0, gap)
            image = pil.crop(image, *corner, self.size, self.size)
        return pil.normalise(pil.to_tensor(image), self.mean, self.std)

    def perturbed(self, image: pil.Picture) -> Tensor:
        move = (self.rotation, self.shift, self.scale, self.shear)
        if move != (0, 0, (1, 1), 0):
            image = pil.move(image, *draw_move(self.size, *move))
        if self.crop_scale is not None:
            box = draw_box(self.size, self.crop_scale, CROP_RATIO)
            image = pil.resize(pil.crop(image, *box), self.size)
        for change in self._draw_jitter():
            image = change(image)
        if random.random() < self.grey:
            image = pil.grey(image)
        if random.random() < self.flip:
            image = pil.flip(image)
        pixels = pil.to_tensor(image)
        if self.noise:
            pixels = pil.add_noise(pixels, self.noise)
        return pil.normalise(pixels, self.mean, self.std)

    def _draw_jitter(self) -> list[Callable[[pil.Picture], pil.Picture]]:
        """The changes that are on, in random order."""
        blends = (
            (pil.brightness, self.brightness),
            (pil.contrast, self.contrast),
            (pil.saturation, self.saturation),
        )
        changes: list[Callable[[pil.Picture], pil.Picture]] = [
            partial(blend, factor=random.uniform(max(0, 1 - strength), 1 + strength))
            for blend, strength in blends
            if strength
        ]
        if self.hue:
            changes.append(partial(pil.hue, turns=random.uniform(-self.hue, self.hue)))
        random.shuffle(changes)
        return changes


def draw_box(
    side: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """Top, left, height, width of RandomResizedCrop in a square image."""
    for _ in range(_CROP_ATTEMPTS):
        area = side * side * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        height, width = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
        if 0 < height <= side and 0 < width <= side:
            return random.randint(0, side - height), random.randint(0, side - width), height, width
    height = min(side, round(side / ratio[0]))
    width = min(side, round(side * ratio[1]))
    return (side - height) // 2, (side - width) // 2, height, width


def draw_move(
    side: int, rotation: float, shift: float, scale: tuple[float, float], shear: float
) -> tuple[float, float, float, float, float]:
    """Angle, whole pixels right and down, scale and shear of RandomAffine."""
    reach = shift * side
    return (
        random.uniform(-rotation, rotation),
        round(random.uniform(-reach, reach)),
        round(random.uniform(-reach, reach)),
        random.uniform(*scale),
        random.uniform(-shear, shear),
    )
