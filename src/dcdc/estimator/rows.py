"""Rows of a table, which are no images, drawn as images all the same.

Each value becomes a grey square; the squares fill a grid line by line. Neighbourhood means nothing
there, so a network for images has no advantage; it lets every tool that feeds tables be used.

Shapes: N rows, D columns, G squares a side of the grid.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_SIDE = 8  # pixels that the grid has at least


class Columns(NamedTuple):
    """The range of each column in fit, D each: black and what is above it up to white."""

    low: NDArray[np.float64]
    span: NDArray[np.float64]


def fitted_columns(rows: NDArray[Any]) -> Columns:
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    # Halves, so that the range of the largest floats is finite; a constant column is all black.
    span = high / 2 - low / 2
    return Columns(low, np.where(span > 0, span, 1.0))


def as_images(rows: NDArray[Any], columns: Columns) -> NDArray[np.uint8]:
    """N x S x S, S a multiple of G and at least 8; values beyond the range of fit are clipped."""
    shares = (rows.astype(np.float64) / 2 - columns.low / 2) / columns.span
    grey = np.rint(255 * shares.clip(0, 1)).astype(np.uint8)
    n_rows, n_columns = grey.shape
    side = math.isqrt(n_columns - 1) + 1
    grid = np.zeros((n_rows, side * side), np.uint8)
    grid[:, :n_columns] = grey
    pixels = math.ceil(_SIDE / side)
    squares = grid.reshape(n_rows, side, side)
    return squares.repeat(pixels, axis=1).repeat(pixels, axis=2)
