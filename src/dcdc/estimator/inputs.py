"""What people give to an estimator becomes images or feature vectors, in predict as it did in fit.

Shapes: N rows or images of H x W pixels and C channels, D columns of a row.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from dcdc.config import DataConfig
from dcdc.data import (
    Data,
    ImageSet,
    VectorSet,
    decode_listing,
    from_arrays,
    from_vectors,
    list_files,
    load_data,
    load_images,
)
from dcdc.data.decoded import Progress
from dcdc.data.sources import given_source
from dcdc.errors import InputError
from dcdc.estimator.layout import (
    Layout,
    Wanted,
    check_numbers,
    float_scale,
    from_pixels,
    layout_of,
    row_shape_of,
)

Source = str | Path | Data | Callable[[int], Data]
"""What `prepare_run` takes: files are read when it knows up to which side."""


def read_first(
    estimator: Any,
    given: Any,
    wanted: Wanted,
    copies: Any = None,
    progress: Progress | None = None,
) -> tuple[Source, Layout | None]:
    """As fit reads: `estimator` learns its `n_features_in_` and the names of the columns. The
    layout of files is known when they are read."""
    vars(estimator).pop("feature_names_in_", None)
    found = _kind(given)
    if found is not None or wanted.image_shape is not None:
        _refuse_copies(copies)
    if isinstance(found, str | Path):
        return found, None
    if isinstance(found, list):
        return partial(_decoded, found, wanted.size, wanted.on_bad, progress=progress), None
    if isinstance(found, VectorSet):
        return found, layout_of(found)
    if isinstance(found, ImageSet):
        images = _of_size(found, wanted.size)
        return images, layout_of(images)
    if isinstance(found, np.ndarray):
        shape = found.shape[1:]
        if wanted.image_shape is not None and shape != wanted.image_shape:
            raise InputError(
                f"X has images of shape {shape}, not image_shape={wanted.image_shape}: drop "
                "image_shape, which is for flat rows"
            )
        return _pixels(found, None, math.prod(shape), wanted)
    rows = _rows(estimator, given, ensure_min_samples=2)
    if wanted.image_shape is not None:
        check_numbers(rows)
        row_shape = row_shape_of(rows.shape[1], wanted.image_shape)
        return _pixels(rows.reshape(-1, *row_shape), row_shape, rows.shape[1], wanted)
    others = None if copies is None else _plain(copies)
    vectors = from_vectors(rows, copies=others, where="X", may_be_equal=wanted.may_be_equal)
    return vectors, layout_of(vectors)


def read_more(
    estimator: Any, given: Any, layout: Layout, size: int, channels: int, data: DataConfig
) -> Data:
    """As predict reads, whatever the parameters have become: brought to the model's `size`."""
    found = _kind(given)
    if layout.are_vectors:
        return _more_vectors(estimator, given, found, data)
    if isinstance(found, VectorSet):
        raise InputError("the model was fitted on images, and X holds feature vectors: give images")
    if isinstance(found, str | Path | list):
        return load_images(found, size=size, channels=channels, on_bad=data.on_bad)
    if isinstance(found, ImageSet):
        return _of_size(found, size)
    if isinstance(found, np.ndarray):
        return from_pixels(found, layout, size)
    rows = _rows(estimator, given, reset=False)
    check_numbers(rows)
    if layout.row_shape is None:
        raise InputError(
            f"X has shape {rows.shape}, but the model was fitted on images: give N x H x W x C"
        )
    return from_pixels(rows.reshape(-1, *layout.row_shape), layout, size)


def _more_vectors(estimator: Any, given: Any, found: Any, data: DataConfig) -> VectorSet:
    if isinstance(found, VectorSet):
        return found
    if found is None:
        rows = _rows(estimator, given, reset=False)
        return from_vectors(rows, where="X", may_be_equal=True)
    read = found
    if isinstance(found, str | Path):
        read = load_data(found, column=data.column, on_bad=data.on_bad, may_be_equal=True)
    if not isinstance(read, VectorSet):
        raise InputError(
            "the model was fitted on feature vectors, and X holds images: give the features of the "
            "same backbone, N x D"
        )
    return read


def _kind(given: Any) -> str | Path | Data | list[Path] | NDArray[Any] | None:
    """A source, a set, paths, pixels of three or four axes; None: rows, which scikit-learn
    validates."""
    if isinstance(given, ImageSet | VectorSet):
        return given
    source = given_source(given)
    if source is not None:
        return source
    if issparse(given) or hasattr(given, "columns"):
        return None
    _refuse_pair(given)
    try:
        array = _plain(given)
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


def _plain(given: Any) -> NDArray[Any]:
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        if given.dtype == torch.bfloat16:  # NumPy lacks it
            given = given.float()
        given = given.numpy()
    return np.asarray(given)


def _rows(estimator: Any, given: Any, **how: Any) -> NDArray[Any]:
    """N x D, with the checks and the notes that scikit-learn has for its own estimators."""
    if isinstance(given, torch.Tensor):
        given = _plain(given)
    rows: NDArray[Any] = validate_data(
        estimator, given, dtype="numeric", ensure_all_finite=False, **how
    )
    return rows


def _pixels(
    pixels: NDArray[Any], row_shape: tuple[int, ...] | None, n_features: int, wanted: Wanted
) -> tuple[ImageSet, Layout]:
    layout = Layout(
        n_features,
        row_shape=row_shape,
        value_range=wanted.value_range,
        float_scale=float_scale(pixels, wanted),
    )
    return from_pixels(pixels, layout, wanted.size), layout


def _refuse_copies(copies: Any) -> None:
    if copies is not None:
        raise InputError("copies are for feature vectors: X must be N x D numbers, as they are")


def _refuse_pair(given: Any) -> None:
    """Two matrices in a tuple would be read as two images."""
    is_pair = isinstance(given, tuple) and len(given) == 2
    if is_pair and all(getattr(each, "ndim", 0) == 2 for each in given):
        raise InputError(
            "X is a tuple of two matrices: give two copies of the same images as fit(X, copies=X2)"
        )


def _decoded(
    paths: list[Path],
    size: int | None,
    on_bad: str,
    largest_side: int,
    progress: Progress | None = None,
) -> ImageSet:
    return decode_listing(
        list_files(paths),
        size=size,
        largest_side=largest_side,
        on_bad=on_bad,
        progress=progress,
    )


def _of_size(images: ImageSet, size: int | None) -> ImageSet:
    if size is None or images.side == size:
        return images
    if images.extra is not None:
        raise InputError(
            f"X has images of {images.side} pixels a side and extra ones, and data.size is {size}: "
            "load it with that size"
        )
    return replace(images, images=from_arrays(images.images, size=size).images)
