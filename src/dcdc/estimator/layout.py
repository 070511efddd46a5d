"""What fit was asked for, and how it read X, which numbers are black and white among it: predict
reads in the same way."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data import Data, ImageSet, VectorSet, from_arrays
from dcdc.errors import InputError

_NO_SHARE, _DARK = 2.0, 64.0
"""Floats of at least the one and below the other are hardly meant as 0..1, nor as 0..255."""


@dataclass(frozen=True)
class Layout:
    """How X was read in fit."""

    n_features: int
    """Numbers in a row, or in an image as it was given."""
    are_vectors: bool = False
    """Rows are feature vectors."""
    row_shape: tuple[int, ...] | None = None
    """Of the image in a flat row; None: X had no such rows."""
    value_range: tuple[float, float] | None = None
    """Black and white, where they were given."""
    float_scale: int | None = None
    """255: floats were from 0 to 1; 1: from 0 to 255; None: there were none."""


@dataclass(frozen=True)
class Wanted:
    """What fit was asked for."""

    image_shape: tuple[int, ...] | None = None
    value_range: tuple[float, float] | None = None
    size: int | None = None
    on_bad: str = "refuse"
    may_be_equal: bool = False
    """Whether rows of feature vectors may be all equal, as for one cluster."""

    @classmethod
    def of(cls, parameters: dict[str, Any], size: int | None, on_bad: str) -> "Wanted":
        wanted = cls(
            image_shape=_as_tuple(parameters["image_shape"], "image_shape"),
            value_range=_as_tuple(parameters["value_range"], "value_range"),
            size=size,
            on_bad=on_bad,
            may_be_equal=parameters["n_clusters"] == 1,
        )
        wanted.check()
        return wanted

    def check(self) -> None:
        shape, values = self.image_shape, self.value_range
        if shape is not None and (len(shape) not in (2, 3) or min(shape) < 1):
            raise InputError(
                f"image_shape={shape} is no image: give (H, W), (H, W, C) or (C, H, W)"
            )
        if values is not None and not (
            len(values) == 2 and all(map(math.isfinite, values)) and values[0] < values[1]
        ):
            raise InputError(
                f"value_range={values} is no range: give (black, white), such as (0, 1)"
            )


def layout_of(data: Data) -> Layout:
    """Of a set that came as one, or from files."""
    if isinstance(data, VectorSet):
        return Layout(data.n_features, are_vectors=True)
    return Layout(math.prod(data.image_shape))


def row_shape_of(n_columns: int, image_shape: tuple[int, ...]) -> tuple[int, ...]:
    if math.prod(image_shape) != n_columns:
        raise InputError(
            f"image_shape={image_shape} has {math.prod(image_shape)} values, but X has {n_columns} "
            "columns: give the shape of one image, such as (28, 28) or (32, 32, 3)"
        )
    return image_shape


def require_meaning(wanted: Wanted, preset: Any = None) -> None:
    """Of feature vectors: what speaks of images is refused, for it was meant for them."""
    if wanted.image_shape is not None:
        raise InputError(
            f"image_shape={wanted.image_shape} is for flat rows in an array: X holds feature "
            "vectors"
        )
    told = "" if wanted.value_range is None else f"value_range={wanted.value_range}"
    told = told or ("" if preset is None else f"preset={preset!r}")
    if told:
        raise InputError(
            f"{told} is for images, and rows of X are feature vectors: leave it out, or say by "
            "image_shape, such as (8, 8), that each row is an image"
        )


def _as_tuple(value: Any, name: str) -> tuple[Any, ...] | None:
    try:
        return None if value is None else tuple(value)
    except TypeError:
        raise InputError(f"{name}={value!r} must be a tuple of numbers") from None


def float_scale(pixels: NDArray[Any], wanted: Wanted) -> int | None:
    """As `from_arrays` takes it, for later floats, whose range may be another by chance."""
    if pixels.dtype.kind != "f" or not pixels.size or wanted.value_range is not None:
        return None
    check_numbers(pixels)
    high = float(pixels.max())
    if _NO_SHARE <= high < _DARK:
        warnings.warn(
            f"floats up to {high:g} are taken as 0..255, so these images are nearly black: give "
            f"value_range=(0, {high:g}) if that is white",
            UserWarning,
            stacklevel=7,  # whoever called fit
        )
    return 255 if high <= 1 else 1


def from_pixels(pixels: NDArray[Any], layout: Layout, size: int | None) -> ImageSet:
    if layout.value_range is not None:
        pixels = _stretched(pixels, *layout.value_range)
    elif pixels.dtype.kind == "f" and layout.float_scale is not None:
        pixels = _as_in_fit(pixels, layout.float_scale)
    return from_arrays(pixels, where="X", size=size)


def check_numbers(pixels: NDArray[Any]) -> None:
    if pixels.dtype.kind not in "biuf":
        raise InputError(f"X has type {pixels.dtype}: give uint8, integers or floats")
    bad = np.flatnonzero(~np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1))
    if len(bad):
        raise InputError(
            f"X has NaN or infinite values, first in row {bad[0]}: replace them or leave that "
            "row out"
        )


def _stretched(pixels: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    check_numbers(pixels)
    shares = (pixels.astype(np.float64) - black) / (white - black)
    return np.asarray(np.rint(255 * shares.clip(0, 1)), np.uint8)


def _as_in_fit(pixels: NDArray[Any], scale: int) -> NDArray[Any]:
    """Only floats that `from_arrays` would read on another scale are changed."""
    check_numbers(pixels)
    high = float(pixels.max(initial=0))
    if (high <= 1) == (scale == 255):
        return pixels
    if scale == 255:
        raise InputError(
            f"X has values up to {high:g}, but the model was fitted on floats from 0 to 1: scale "
            "them alike"
        )
    low = float(pixels.min())
    return pixels if low < 0 else np.rint(pixels).astype(np.uint8)
