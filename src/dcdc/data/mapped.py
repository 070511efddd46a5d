"""Arrays over memory-mapped files: a process that reads one through should not grow by it."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError

_ROWS_AT_A_TIME = 32


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The map below an array or a view of one, if its pages are the file's own."""
    base: Any = array
    is_the_file = False
    while base is not None and not isinstance(base, mmap.mmap):
        # giving back pages of a copy-on-write map would undo what was written to them
        is_the_file |= isinstance(base, np.memmap) and base.mode != "c"
        base = getattr(base, "base", None)
    return base if is_the_file else None


def root_map(array: NDArray[Any]) -> "np.memmap[Any, Any] | None":
    """The array that numpy made of a file when it mapped it, if its pages are the file's own."""
    base: Any = array if mapping_of(array) is not None else None
    while base is not None and not (
        isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap)
    ):
        base = base.base
    return base


def require_whole(array: NDArray[Any]) -> None:
    """Refuses a map whose file was cut meanwhile: reading beyond its end would end the process.

    Asked before each block, so that only a cut during the very reading of one is still deadly.
    """
    root = root_map(array)
    if root is None or root.filename is None:
        return
    try:
        n_bytes = Path(root.filename).stat().st_size
    except OSError:  # the map outlives the file's name
        return
    if n_bytes < root.offset + root.nbytes:
        raise InputError(
            f"{root.filename} was cut short while it was in use: put it back as it was, then "
            "start again"
        )


def release_pages(array: NDArray[Any]) -> None:
    """Gives back the memory of pages read so far; the file's cache in the kernel stays."""
    mapping = mapping_of(array)
    if mapping is not None and hasattr(mapping, "madvise"):  # Windows has no such call
        mapping.madvise(mmap.MADV_DONTNEED)


def slices_of(array: NDArray[Any], n_rows: int, first: int = 0) -> Iterator[slice]:
    """From a row on, so many at a time, so that a mapped array is never in memory as a whole."""
    for start in range(first, len(array), n_rows):
        require_whole(array)
        yield slice(start, start + n_rows)
        release_pages(array)


def slices_within(array: NDArray[Any], n_bytes: int, first: int = 0) -> Iterator[slice]:
    """The same, by how much of it is in memory at a time."""
    return slices_of(array, max(1, n_bytes // max(1, array[0].nbytes)), first)


def gather_spread(array: NDArray[Any], about: int, at_a_time: int) -> Iterator[NDArray[Any]]:
    """Copies of some of the rows, `about` as many, evenly spread over all, a few at a time."""
    rows = np.arange(0, len(array), max(1, len(array) // about))
    for some in np.array_split(rows, -(-len(rows) // at_a_time)):
        yield gather_rows(array, some)


class Gatherable(Protocol):
    """Rows that are made when they are asked for, as an array has them."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def gather(self, rows: NDArray[np.integer]) -> NDArray[Any]: ...


def gather_rows(array: NDArray[Any] | Gatherable, rows: NDArray[np.integer]) -> NDArray[Any]:
    """A copy of some rows, in the order asked for."""
    if not isinstance(array, np.ndarray):
        return array.gather(rows)
    require_whole(array)
    found = np.empty((len(rows), *array.shape[1:]), array.dtype)
    # One row of a map may bring in megabytes around it: few are read before all are given back.
    n_rows = len(rows) if mapping_of(array) is None else _ROWS_AT_A_TIME
    for start in range(0, len(rows), max(1, n_rows)):
        few = slice(start, start + n_rows)
        found[few] = array[rows[few]]
        release_pages(array)
    return found
