"""Rows of numbers from anywhere become features: checked and converted a block at a time.

What is large goes through the row cache and comes back memory-mapped, so that memory stays flat.
Shapes: N rows of D features.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decoded import Progress
from dcdc.data.mapped import slices_within
from dcdc.data.row_cache import Block, RowSource, cached_rows
from dcdc.errors import InputError
from dcdc.runtime.journal import Skips

MAP_ABOVE_BYTES = 64 * 2**20  # smaller ones are held in memory
_BLOCK_BYTES = 8 * 2**20
_BAD = "NaN, infinite or missing values"
_HUGE = 1e18
"""Squares of such numbers, added up, are beyond float32: they count as infinite. So do all that
float16 cannot hold."""


BFLOAT16 = np.dtype([("bfloat16", "<u2")])
"""The bits of a type that NumPy lacks."""


@dataclass(frozen=True)
class Reading:
    """How feature vectors are read from anywhere."""

    target: str | None = None
    """The label column of Parquet or of a table; "none": no labels."""
    column: str | None = None
    """Which column, array or tensor holds the vectors, where several could."""
    on_bad: str = "refuse"
    progress: Progress | None = None
    on_wait: Callable[[], None] | None = None


@dataclass(frozen=True, eq=False)
class VectorRows:
    """A matrix that is read piece by piece."""

    where: str
    key: str | None
    """Names the content: equal keys mean equal rows. None: they are only held in memory."""
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[NDArray[Any]]]
    """From a row on, in order, of `dtype`; NaN stands for what is missing."""

    @property
    def n_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.itemsize


def settled(
    array: NDArray[Any], where: str, key: str | None, reading: Reading
) -> tuple[NDArray[Any], Skips]:
    """A matrix as features: itself where it is that already, all values finite."""
    if (
        feature_type(array.dtype) == array.dtype
        and array.flags.c_contiguous
        and array.flags.aligned
    ):
        skipped = _bad_rows(array)
        if not skipped:
            return array, ()
        _refuse_bad(skipped, len(array), where, reading)
    blocks = partial(_array_blocks, array)
    shape = (array.shape[0], array.shape[1])
    return kept_rows(VectorRows(where, key, shape, feature_type(array.dtype), blocks), reading)


def kept_rows(rows: VectorRows, reading: Reading) -> tuple[NDArray[Any], Skips]:
    """The finite rows, and those that were left out; held in memory, or mapped from the cache."""
    if rows.key is None or rows.n_bytes <= MAP_ABOVE_BYTES:
        found, skipped = _held(rows)
    else:
        found, skipped = _cached(rows, reading)
    _refuse_bad(skipped, rows.shape[0], rows.where, reading)
    return found, skipped


def _refuse_bad(skipped: Skips, n_rows: int, where: str, reading: Reading) -> None:
    if skipped and reading.on_bad == "refuse":
        raise InputError(
            f"{where} has {_BAD} in {len(skipped):,} of {n_rows:,} rows, first in row "
            f"{skipped[0][0]}",
            remedy=("replace them", "leave these rows out", "use {on_bad=skip}"),
        )


def feature_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float16 stays, in the byte order of the machine; everything else becomes float32."""
    return np.dtype(np.float16 if dtype.kind == "f" and dtype.itemsize == 2 else np.float32)


def as_features(block: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if block.dtype == BFLOAT16:  # the upper half of a float32's bits
        return (block["bfloat16"].astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):  # beyond float32 it is infinite, and is told as that
        return np.ascontiguousarray(block, dtype)


def blocks_of(array: NDArray[Any], first: int = 0) -> Iterator[slice]:
    return slices_within(array, _BLOCK_BYTES, first)


def content_key(*parts: str) -> str:
    """What `VectorRows.key` may be made of: fingerprints of files, and how they are read."""
    return hashlib.sha256("\0".join(("feature vectors", *parts)).encode()).hexdigest()[:32]


def _array_blocks(array: NDArray[Any], start: int) -> Iterator[NDArray[Any]]:
    dtype = feature_type(array.dtype)
    for block in blocks_of(array, start):
        yield as_features(array[block], dtype)


def _bad_rows(array: NDArray[Any]) -> Skips:
    found: list[tuple[int, str]] = []
    for block in blocks_of(array):
        found += _bad_of(array[block], block.start)
    return tuple(found)


def _bad_of(block: NDArray[Any], first: int) -> list[tuple[int, str]]:
    with np.errstate(over="ignore"):
        finite = np.abs(block) < _HUGE  # false for NaN, too
    if finite.all():
        return []
    return [(first + row, _BAD) for row in np.flatnonzero(~finite.all(axis=1)).tolist()]


def _checked(rows: VectorRows, start: int) -> Iterator[tuple[NDArray[Any], Skips]]:
    """Finite rows of each block, and the others by their number."""
    first = start
    for block in rows.blocks(start):
        bad = tuple(_bad_of(block, first))
        yield (np.delete(block, [row - first for row, _ in bad], axis=0) if bad else block), bad
        first += len(block)


def _held(rows: VectorRows) -> tuple[NDArray[Any], Skips]:
    found = np.empty(rows.shape, rows.dtype)
    n_kept, skipped = 0, list[tuple[int, str]]()
    for block, bad in _checked(rows, 0):
        found[n_kept : n_kept + len(block)] = block
        n_kept += len(block)
        skipped += bad
    assert n_kept + len(skipped) == len(found), (n_kept, len(skipped), rows.shape)
    return found[:n_kept], tuple(skipped)


def _cached(rows: VectorRows, reading: Reading) -> tuple[NDArray[Any], Skips]:
    """The cache holds bytes: D values of two or four each are kept as D x 2 x 1 or D x 4 x 1."""
    assert rows.key is not None
    (n_rows, n_features), n_bytes = rows.shape, rows.dtype.itemsize

    def blocks(start: int) -> Iterator[Block]:
        for block, bad in _checked(rows, start):
            pixels = block.view(np.uint8).reshape(len(block), n_features, n_bytes, 1)
            yield Block(pixels, n_read=len(block) + len(bad), skipped=bad)

    source = RowSource(rows.key, n_rows, (n_features, n_bytes, 1), blocks, what="feature vectors")
    kept = cached_rows(source, progress=reading.progress, on_wait=reading.on_wait)
    flat = kept.images.reshape(len(kept.images), n_features * n_bytes)
    return flat.view(rows.dtype), kept.skipped
