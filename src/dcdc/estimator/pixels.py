"""Numbers become pixels: which are black and white, in predict as in fit."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data import ImageSet, from_arrays
from dcdc.errors import InputError
from dcdc.estimator.layout import Layout, Wanted

_NO_SHARE, _DARK = 2.0, 64.0
"""Floats of at least the one and below the other are hardly meant as 0..1, nor as 0..255."""


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
