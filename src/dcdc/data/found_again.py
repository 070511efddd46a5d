"""A source that was read before, as it lies there now: its images by the names they had then."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.image_set import ImageSet
from dcdc.data.listing import Listing
from dcdc.data.load_data import find_data
from dcdc.data.sources import readable
from dcdc.data.vector_rows import Reading
from dcdc.data.vector_set import VectorSet

Found = ImageSet | Listing | VectorSet


def find_again(source: str, target: str | None = None, column: str | None = None) -> Found:
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
