"""One argument, any source: images or feature vectors, whichever it holds.

A source that was read before is found again as it lies there now, its images by their names.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decoded import LARGEST_SIDE, Progress, check_on_bad, decode_listing
from dcdc.data.image_set import ImageSet, check_side
from dcdc.data.listing import Listing
from dcdc.data.sources import built_in_name, readable, require_kind
from dcdc.data.vector_arrays import require_enough
from dcdc.data.vector_files import load_vectors
from dcdc.data.vector_rows import Reading
from dcdc.data.vector_set import VectorSet
from dcdc.errors import no_meaning

Found = ImageSet | Listing | VectorSet


def load_data(
    source: str | Path,
    *,
    size: int | None = None,
    largest_side: int = LARGEST_SIDE,
    target: str | None = None,
    column: str | None = None,
    on_bad: str = "refuse",
    at_least: int = 1,
    may_be_equal: bool = False,
    progress: Progress | None = None,
    on_wait: Callable[[], None] | None = None,
) -> ImageSet | VectorSet:
    """Load any source of images, as `load_images` does, or of feature vectors: its content tells.

    N x D numbers, and Parquet with lists of floats and no images, are vectors. `column` names the
    column, array or tensor that holds them, where several could. `at_least` and `may_be_equal` are
    for vectors, as in `from_vectors`.
    """
    check_side(size)
    check_on_bad(on_bad)
    reading = Reading(target, column, on_bad, progress, on_wait)
    with readable(source):
        found = find_data(source, size, reading)
    if isinstance(found, VectorSet):
        if size is not None:
            raise no_meaning("size", size, f"{source}: it holds feature vectors, which have none")
        require_enough(found, str(source), at_least=at_least, may_be_equal=may_be_equal)
        return replace(found, known_as=built_in_name(source))
    if column is not None:
        raise no_meaning("column", column, f"{source}, which holds no feature vectors")
    if isinstance(found, Listing):
        found = decode_listing(
            found,
            size=size,
            largest_side=largest_side,
            on_bad=on_bad,
            progress=progress,
            on_wait=on_wait,
        )
    return replace(found, known_as=built_in_name(source))


def find_data(
    source: str | Path, size: int | None, reading: Reading
) -> ImageSet | Listing | VectorSet:
    """What `load_data` decodes, or loads as it is."""
    kind = require_kind(source)
    if kind.has_vectors(str(source), reading.column):
        return load_vectors(source, reading)
    return kind.find(str(source), size, reading.target)


def find_again(source: str | Path, target: str | None = None, column: str | None = None) -> Found:
    """Not brought to a size; raises InputError."""
    with readable(source):
        return find_data(source, None, Reading(target, column, on_bad="skip"))


def file_of(found: Found) -> Callable[[int], Path] | None:
    """Where the file of a row lies, for sources whose images are files."""
    if isinstance(found, VectorSet):
        return None if found.files is None else found.files.__getitem__
    return found.file_of if isinstance(found, Listing) else None


def places_of(here: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Where among `here` each of `names` is; -1 for one that is not. Most often every one is where
    it was. Of equal names, the first ones stand for the first."""
    if len(here) == len(names) and all(map(str.__eq__, here, names)):
        return np.arange(len(names))
    waiting: dict[str, list[int]] = {}
    for place in range(len(here) - 1, -1, -1):
        waiting.setdefault(here[place], []).append(place)
    places = (waiting[name].pop() if waiting.get(name) else -1 for name in names)
    return np.fromiter(places, np.int64, len(names))
