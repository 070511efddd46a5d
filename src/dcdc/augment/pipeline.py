"""The two copies of a batch: the original, shifted a little, and its perturbed repeats.

B images, r repeats, C channels, H x W pixels
"""

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dcdc.augment.color import (
    Jitter,
    apply_grey,
    apply_jitter,
    apply_noise,
    draw_grey,
    draw_jitter,
    draw_noise,
    to_float,
)
from dcdc.augment.geometry import (
    Affine,
    apply_affine,
    apply_centre_crop,
    apply_flip,
    apply_resize_crop,
    apply_resized_crop,
    centre_crop_matrix,
    draw_affine,
    draw_flip,
    draw_resize_crop,
    draw_resized_crop,
)
from dcdc.augment.kernels import Kernels, kernels_on
from dcdc.errors import InputError

OriginalDraw = Tensor | None

CROP_RATIO = (3 / 4, 4 / 3)
"""Width over height of a random crop, at least and at most."""


class PerturbedDraw(NamedTuple):
    """None for an op that is off."""

    move: Affine | None
    boxes: Tensor | None
    jitter: Jitter | None
    grey: Tensor | None
    flip: Tensor | None
    noise: Tensor | None


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
        return self.apply(images, self.draw(images, generator))

    def draw(self, images: Tensor, generator: Generator) -> OriginalDraw:
        """Where each image is cropped."""
        if self.resize_to == self.size:
            return None
        return draw_resize_crop(len(images), self.resize_to, self.size, generator)

    def part(self, draw: OriginalDraw, rows: slice) -> OriginalDraw:
        """Of a draw, what some of its images need."""
        return None if draw is None else draw[rows]

    def has_kernel(self, device: torch.device) -> bool:
        """Whether `apply` is one launch there, for bytes."""
        return kernels_on(device) is not None

    def apply(self, images: Tensor, draw: OriginalDraw) -> Tensor:
        if draw is None:
            return to_float(images)
        kernels = _kernels_for(images) if max(images.shape[2:]) <= self.resize_to else None
        if kernels is not None:
            return kernels.original_copies(images, draw, self.resize_to, self.size)
        return apply_resize_crop(to_float(images), draw, self.resize_to, self.size)

    def centre(self, images: Tensor) -> Tensor:
        """B x C x size x size from the centre, for evaluation."""
        images = to_float(images)
        if self.resize_to == self.size:
            return images
        return apply_centre_crop(images, self.resize_to, self.size)

    def centre_matrix(self) -> Tensor | None:
        """size x size: rows and columns of `centre` for images of its own size; None: as they
        are."""
        if self.resize_to == self.size:
            return None
        return centre_crop_matrix(self.size, self.resize_to, self.size)


class PerturbedCopy:
    """Affine, resized crop, colour jitter, grey, flip, noise: each off by default, size kept."""

    def __init__(
        self,
        *,
        n_repeats: int = 1,
        crop_scale: tuple[float, float] | None = None,
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
        self.jitter = (brightness, contrast, saturation, hue)
        self.grey = grey
        self.flip = flip
        self.noise = noise

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """rB x C x H x W: copy 1 of every image, then copy 2 of every image, ..."""
        return self.apply(images, self.draw(images, generator))

    def draw(self, images: Tensor, generator: Generator) -> PerturbedDraw:
        """Of every op that is on, for each of the rB copies."""
        n, channels, height, width = len(images) * self.n_repeats, *images.shape[1:]
        return PerturbedDraw(
            move=draw_affine(n, height, width, *self.move, generator) if self._moves else None,
            boxes=None
            if self.crop_scale is None
            else draw_resized_crop(n, height, width, self.crop_scale, CROP_RATIO, generator),
            jitter=draw_jitter(n, *self.jitter, generator) if any(self.jitter) else None,
            grey=draw_grey(n, self.grey, generator) if self.grey else None,
            flip=draw_flip(n, self.flip, generator) if self.flip else None,
            noise=draw_noise((n, channels, height, width), self.noise, generator)
            if self.noise
            else None,
        )

    def part(self, draw: PerturbedDraw, rows: slice) -> PerturbedDraw:
        """Of a draw for B images, what all copies of some of them need."""

        def own(values: Tensor | None) -> Tensor | None:
            return None if values is None else rows_of_copies(values, self.n_repeats, rows)

        return PerturbedDraw(
            move=None if draw.move is None else Affine(*map(own, draw.move)),  # type: ignore[arg-type]
            boxes=own(draw.boxes),
            jitter=None if draw.jitter is None else Jitter(*map(own, draw.jitter)),  # type: ignore[arg-type]
            grey=own(draw.grey),
            flip=own(draw.flip),
            noise=own(draw.noise),
        )

    @property
    def _moves(self) -> bool:
        return self.move != (0, 0, (1, 1), 0)

    def has_kernel(self, device: torch.device) -> bool:
        """Whether `apply` is one launch there, for bytes: no kernel moves or adds noise."""
        return not self._moves and not self.noise and kernels_on(device) is not None

    def apply(self, images: Tensor, draw: PerturbedDraw) -> Tensor:
        kernels = _kernels_for(images) if draw.move is None and draw.noise is None else None
        if kernels is not None:
            return kernels.perturbed_copies(
                images, self.n_repeats, draw.boxes, draw.jitter, draw.grey, draw.flip
            )
        height, width = images.shape[-2:]
        images = to_float(images).repeat(self.n_repeats, 1, 1, 1)
        if draw.move is not None:
            images = apply_affine(images, draw.move)
        if draw.boxes is not None:
            images = apply_resized_crop(images, draw.boxes, height, width)
        if draw.jitter is not None:
            images = apply_jitter(images, draw.jitter)
        if draw.grey is not None:
            images = apply_grey(images, draw.grey)
        if draw.flip is not None:
            images = apply_flip(images, draw.flip)
        if draw.noise is not None:
            images = apply_noise(images, draw.noise)
        return images


def rows_of_copies(values: Tensor, n_repeats: int, rows: slice) -> Tensor:
    """Of values for each of rB copies, those of all copies of some images."""
    by_copy = values.view(n_repeats, -1, *values.shape[1:])
    return by_copy[:, rows].flatten(0, 1)


def _kernels_for(images: Tensor) -> Kernels | None:
    """None where the ops do it one by one."""
    kernels = kernels_on(images.device)
    return kernels if kernels is not None and kernels.fits(images) else None


def _check(name: str, value: float, low: float = 0, high: float = math.inf) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        bounds = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
        raise InputError(f"{name} is {value}: give a number {bounds}")


def _check_pair(name: str, pair: tuple[float, float], high: float = math.inf) -> None:
    if not (math.isfinite(pair[1]) and 0 < pair[0] <= pair[1] <= high):
        bound = "" if high == math.inf else f" <= {high}"
        raise InputError(f"{name} is {pair}: give (low, high) with 0 < low <= high{bound}")
