"""The image files of a run, found again in its source by their names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dcdc.data.found_again import file_of, find_again, places_of
from dcdc.errors import InputError
from dcdc.prediction.sorting import Files, NamedFiles


def run_files(config: Mapping[str, Any], names: Sequence[str]) -> Files:
    """Of the images called `names`; without files where the source has none. `config` by
    `section.key`."""
    source = str(config.get("data.source") or "")
    if not source:
        return NamedFiles("what the run was given in Python", names)
    found = find_again(source, config.get("data.target"), config.get("data.column"))
    at = file_of(found)
    if at is None:
        return NamedFiles(source, names)
    places = places_of(found.names, names)

    def file(row: int) -> Path:
        if places[row] < 0:
            raise InputError(f"the image {names[row]} is no longer in {source}: put it there again")
        return at(int(places[row]))

    return NamedFiles(source, names, file)
