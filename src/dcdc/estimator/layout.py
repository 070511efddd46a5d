"""What fit was asked for, and how it read X: predict reads in the same way."""

import math
from dataclasses import dataclass
from typing import Any

from dcdc.data import Data, VectorSet
from dcdc.errors import InputError


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
