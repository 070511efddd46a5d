"""The image files of a run, found again in its source by their names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data import ImageSet, Listing, VectorSet
from dcdc.data.load_data import find_data
from dcdc.data.sources import readable
from dcdc.data.vector_rows import Reading
from dcdc.errors import InputError
from dcdc.prediction.sorting import Files, NamedFiles


def find_source(config: Mapping[str, Any]) -> ImageSet | Listing | VectorSet:
    """As it lies there, not brought to a size; `config` by `section.key`. Raises InputError."""
    source = str(config.get("data.source") or "")
    if not source:
        raise InputError("the run was given its images in Python and names no source")
    reading = Reading(config.get("data.target"), config.get("data.column"), on_bad="skip")
    with readable(source):
        return find_data(source, None, reading)


def run_files(config: Mapping[str, Any], names: Sequence[str]) -> Files:
    """Of the images called `names`; without files where the source has none."""
    return files_among(find_source(config), names, str(config.get("data.source") or ""))


def files_among(
    found: ImageSet | Listing | VectorSet, names: Sequence[str], source: str
) -> NamedFiles:
    places = places_of(found.names, names)
    at = _file_of(found)
    if at is None:
        return NamedFiles(source, names)

    def file_of(row: int) -> Path:
        if places[row] < 0:
            raise InputError(f"the image {names[row]} is no longer in {source}: put it there again")
        return at(int(places[row]))

    return NamedFiles(source, names, file_of)


def _file_of(found: ImageSet | Listing | VectorSet) -> Callable[[int], Path] | None:
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
