"""What people hand to an estimator becomes an ImageSet, in predict exactly as it did in fit.

Shapes: N rows or images of H x W pixels and C channels, D columns of a row.
"""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from dcdc.data import ImageSet, decode_listing, from_arrays, list_files
from dcdc.errors import InputError
from dcdc.estimator.rows import Columns, as_images, fitted_columns

_SMALLEST_SQUARE = 8
"""Pixels a side from which a square number of columns is taken for a grey image."""
_NO_SHARE, _DARK = 2.0, 64.0
"""Floats of at least the one and below the other are hardly meant as 0..1, nor as 0..255."""


@dataclass(frozen=True)
class Layout:
    """How X was read in fit."""

    n_features: int
    """Numbers in a row, or in an image as it was given."""
    row_shape: tuple[int, ...] | None = None
    """Of the image in a flat row; None: X had no flat rows."""
    columns: Columns | None = None
    """Where rows are no images: the range of each column."""
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
    largest_side: int = 96


def read_first(estimator: Any, given: Any, wanted: Wanted) -> tuple[ImageSet, Layout]:
    """As fit reads: `estimator` learns its `n_features_in_` and the names of the columns."""
    _check_wanted(wanted)
    vars(estimator).pop("feature_names_in_", None)
    found = _kind(given)
    if isinstance(found, ImageSet):
        images = _of_size(found, wanted.size)
        return images, Layout(math.prod(images.image_shape))
    if isinstance(found, list):
        images = _decoded(found, wanted.size, wanted.largest_side)
        return images, Layout(math.prod(images.image_shape))
    if isinstance(found, np.ndarray):
        shape = found.shape[1:]
        if wanted.image_shape is not None and shape != wanted.image_shape:
            raise InputError(
                f"X has images of shape {shape}, not image_shape={wanted.image_shape}: drop "
                "image_shape, which is for flat rows"
            )
        layout = Layout(
            math.prod(shape),
            value_range=wanted.value_range,
            float_scale=_float_scale(found, wanted),
        )
        return _from_pixels(found, layout, wanted.size), layout
    rows = _rows(estimator, given, ensure_min_samples=2)
    row_shape = _shape_of_row(rows.shape[1], wanted.image_shape)
    if row_shape is None:
        columns = fitted_columns(rows)
        layout = Layout(rows.shape[1], columns=columns)
        return from_arrays(as_images(rows, columns), where="X", size=wanted.size), layout
    layout = Layout(
        rows.shape[1],
        row_shape=row_shape,
        value_range=wanted.value_range,
        float_scale=_float_scale(rows, wanted),
    )
    return _from_pixels(rows.reshape(-1, *row_shape), layout, wanted.size), layout


def read_more(estimator: Any, given: Any, layout: Layout, size: int, channels: int) -> ImageSet:
    """As predict reads, whatever the parameters have become: brought to the model's `size`."""
    found = _kind(given)
    if layout.columns is not None and found is not None:
        raise InputError("the model was fitted on rows of a table: give rows of the same columns")
    if isinstance(found, ImageSet):
        return _of_size(found, size)
    if isinstance(found, list):
        images = _decoded(found, size, size)
        if channels == 3 and images.channels == 1:  # all of these files happen to be grey
            images = replace(images, images=np.repeat(images.images, 3, axis=3))
        return images
    if isinstance(found, np.ndarray):
        return _from_pixels(found, layout, size)
    rows = _rows(estimator, given, reset=False)
    if layout.columns is not None:
        return from_arrays(as_images(rows, layout.columns), where="X", size=size)
    if layout.row_shape is None:
        raise InputError(
            f"X has shape {rows.shape}, but the model was fitted on images: give N x H x W x C"
        )
    return _from_pixels(rows.reshape(-1, *layout.row_shape), layout, size)


def _kind(given: Any) -> ImageSet | list[Path] | NDArray[Any] | None:
    """A set, paths, pixels of three or four axes; None: rows, which scikit-learn validates."""
    if isinstance(given, ImageSet):
        return given
    if isinstance(given, str | os.PathLike):
        raise InputError(
            f"X is {str(given)!r}: give a list of paths, or dcdc.data.load_images({str(given)!r})"
        )
    if issparse(given) or hasattr(given, "columns"):
        return None
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        given = (given.float() if given.is_floating_point() else given).numpy()
    if _are_paths(given):
        return [Path(path) for path in given]
    try:
        array = np.asarray(given)
    except (ValueError, TypeError):  # ragged, or no array at all
        if isinstance(given, Sequence) and len(given) and hasattr(given[0], "shape"):
            shapes = sorted({tuple(image.shape) for image in given})
            raise InputError(
                f"X has images of different shapes, such as {shapes[0]} and {shapes[-1]}: give "
                "images of equal size, or a list of paths"
            ) from None
        return None
    if array.ndim < 2 and array.dtype.kind in "biuf":
        raise InputError(
            f"X has shape {array.shape}: give images or rows, one for each sample. Reshape your "
            "data, for example by X[None] if it is a single one"
        )
    return array if array.ndim > 2 else None


def _rows(estimator: Any, given: Any, **how: Any) -> NDArray[Any]:
    """N x D, with the checks and the notes that scikit-learn has for its own estimators."""
    rows: NDArray[Any] = validate_data(
        estimator, given, dtype="numeric", ensure_all_finite=False, **how
    )
    _check_numbers(rows)
    return rows


def _are_paths(given: Any) -> bool:
    if not isinstance(given, Sequence | np.ndarray) or getattr(given, "ndim", 1) != 1:
        return False
    return len(given) > 0 and all(isinstance(item, str | os.PathLike) for item in given)


def _decoded(paths: list[Path], size: int | None, largest_side: int) -> ImageSet:
    return decode_listing(list_files(paths), size=size, largest_side=largest_side)


def _of_size(images: ImageSet, size: int | None) -> ImageSet:
    if size is None or images.side == size:
        return images
    if images.extra is not None:
        raise InputError(
            f"X has images of {images.side} pixels a side and extra ones, and data.size is {size}: "
            "load it with that size"
        )
    return replace(images, images=from_arrays(images.images, size=size).images)


def _shape_of_row(n_columns: int, image_shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """None: the row is no image."""
    if image_shape is None:
        side = math.isqrt(n_columns)
        return (side, side) if side**2 == n_columns and side >= _SMALLEST_SQUARE else None
    if math.prod(image_shape) != n_columns:
        raise InputError(
            f"image_shape={image_shape} has {math.prod(image_shape)} values, but X has {n_columns} "
            "columns: give the shape of one image, such as (28, 28) or (32, 32, 3)"
        )
    return image_shape


def _check_wanted(wanted: Wanted) -> None:
    shape, values = wanted.image_shape, wanted.value_range
    if shape is not None and (len(shape) not in (2, 3) or min(shape) < 1):
        raise InputError(f"image_shape={shape} is no image: give (H, W), (H, W, C) or (C, H, W)")
    if values is not None and not (
        len(values) == 2 and all(map(math.isfinite, values)) and values[0] < values[1]
    ):
        raise InputError(f"value_range={values} is no range: give (black, white), such as (0, 1)")


def _float_scale(pixels: NDArray[Any], wanted: Wanted) -> int | None:
    """As `from_arrays` takes it, for later floats, whose range may be another by chance."""
    if pixels.dtype.kind != "f" or not pixels.size or wanted.value_range is not None:
        return None
    high = float(np.nanmax(pixels))
    if _NO_SHARE <= high < _DARK:
        warnings.warn(
            f"floats up to {high:g} are taken as 0..255, so these images are nearly black: give "
            f"value_range=(0, {high:g}) if that is white",
            UserWarning,
            stacklevel=5,  # whoever called fit
        )
    return 255 if high <= 1 else 1


def _from_pixels(pixels: NDArray[Any], layout: Layout, size: int | None) -> ImageSet:
    if layout.value_range is not None:
        pixels = _stretched(pixels, *layout.value_range)
    elif pixels.dtype.kind == "f" and layout.float_scale is not None:
        pixels = _as_in_fit(pixels, layout.float_scale)
    return from_arrays(pixels, where="X", size=size)


def _stretched(pixels: NDArray[Any], black: float, white: float) -> NDArray[np.uint8]:
    _check_numbers(pixels)
    shares = (pixels.astype(np.float64) - black) / (white - black)
    return np.asarray(np.rint(255 * shares.clip(0, 1)), np.uint8)


def _as_in_fit(pixels: NDArray[Any], scale: int) -> NDArray[Any]:
    """Only floats that `from_arrays` would read on another scale need a hand."""
    _check_numbers(pixels)
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


def _check_numbers(pixels: NDArray[Any]) -> None:
    if pixels.dtype.kind not in "biuf":
        raise InputError(f"X has type {pixels.dtype}: give uint8, integers or floats")
    bad = np.flatnonzero(~np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1))
    if len(bad):
        raise InputError(
            f"X has NaN or infinite values, first in row {bad[0]}: replace them or leave that "
            "row out"
        )
