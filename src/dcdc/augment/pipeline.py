"""The two copies of a batch: the original, gently shifted, and its perturbed repeats.

B images, r repeats, C channels, H x W pixels
"""

import math

from torch import Generator, Tensor

from dcdc.augment.affine import apply_affine, draw_affine
from dcdc.augment.color_jitter import apply_jitter, draw_jitter
from dcdc.augment.flip import apply_flip, draw_flip
from dcdc.augment.grey import apply_grey, draw_grey
from dcdc.augment.noise import apply_noise, draw_noise
from dcdc.augment.resize_crop import apply_centre_crop, apply_resize_crop, draw_resize_crop
from dcdc.augment.resized_crop import apply_resized_crop, draw_resized_crop
from dcdc.augment.to_float import to_float
from dcdc.errors import InputError


class OriginalCopy:
    """Resize to a square of resize_to pixels, crop size back; resize_to 0 or size: as it is."""

    def __init__(self, size: int, resize_to: int) -> None:
        _check("size", size, low=1)
        if resize_to != 0 and resize_to < size:
            raise InputError(f"resize_to is {resize_to}: give at least the size, {size}, or 0")
        self.size = size
        self.resize_to = resize_to or size

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """B x C x size x size from a random place, for training."""
        images = to_float(images)
        if self.resize_to == self.size:
            return images
        offsets = draw_resize_crop(len(images), self.resize_to, self.size, generator)
        return apply_resize_crop(images, offsets, self.resize_to, self.size)

    def centre(self, images: Tensor) -> Tensor:
        """B x C x size x size from the centre, for evaluation."""
        images = to_float(images)
        if self.resize_to == self.size:
            return images
        return apply_centre_crop(images, self.resize_to, self.size)


class PerturbedCopy:
    """Affine, resized crop, colour jitter, grey, flip, noise: each off by default, size kept."""

    def __init__(
        self,
        *,
        n_repeats: int = 1,
        crop_scale: tuple[float, float] | None = None,
        crop_ratio: tuple[float, float] = (3 / 4, 4 / 3),
        brightness: float = 0.0,
        contrast: float = 0.0,
        saturation: float = 0.0,
        hue: float = 0.0,
        grey: float = 0.0,
        flip: float = 0.0,
        rotation: float = 0.0,
        shift: float = 0.0,
        scale: tuple[float, float] = (1.0, 1.0),
        shear: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        _check("n_repeats", n_repeats, low=1)
        if crop_scale is not None:
            _check_pair("crop_scale", crop_scale, high=1)
        _check_pair("crop_ratio", crop_ratio)
        _check("brightness", brightness)
        _check("contrast", contrast)
        _check("saturation", saturation)
        _check("hue", hue, high=0.5)
        _check("grey", grey, high=1)
        _check("flip", flip, high=1)
        _check("rotation", rotation, high=180)
        _check("shift", shift, high=1)
        _check_pair("scale", scale)
        _check("shear", shear, high=89)
        _check("noise", noise)
        self.n_repeats = n_repeats
        self.move = (rotation, shift, scale, shear)
        self.crop_scale = crop_scale
        self.crop_ratio = crop_ratio
        self.jitter = (brightness, contrast, saturation, hue)
        self.grey = grey
        self.flip = flip
        self.noise = noise

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """rB x C x H x W: copy 1 of every image, then copy 2 of every image, ..."""
        images = to_float(images).repeat(self.n_repeats, 1, 1, 1)
        n, _, height, width = images.shape
        if self.move != (0, 0, (1, 1), 0):
            images = apply_affine(images, draw_affine(n, height, width, *self.move, generator))
        if self.crop_scale is not None:
            box_law = self.crop_scale, self.crop_ratio
            boxes = draw_resized_crop(n, height, width, *box_law, generator)
            images = apply_resized_crop(images, boxes, height, width)
        if any(self.jitter):
            images = apply_jitter(images, draw_jitter(n, *self.jitter, generator))
        if self.grey:
            images = apply_grey(images, draw_grey(n, self.grey, generator))
        if self.flip:
            images = apply_flip(images, draw_flip(n, self.flip, generator))
        if self.noise:
            images = apply_noise(images, draw_noise(images.shape, self.noise, generator))
        return images


def _check(name: str, value: float, low: float = 0, high: float = math.inf) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        bounds = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
        raise InputError(f"{name} is {value}: give a number {bounds}")


def _check_pair(name: str, pair: tuple[float, float], high: float = math.inf) -> None:
    if not (math.isfinite(pair[1]) and 0 < pair[0] <= pair[1] <= high):
        bound = "" if high == math.inf else f" <= {high}"
        raise InputError(f"{name} is {pair}: give (low, high) with 0 < low <= high{bound}")
