"""The original of each of a run's images: a file, the bytes of a row, or pixels.

A client names an image by its row alone. Shapes: N images of the run, H x W x C pixels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.image_set import ImageSet
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.load_data import Found, places_of
from dcdc.data.vector_set import VectorSet

Original = Encoded | NDArray[np.uint8]
_GONE = BadImage("no longer in the source")


@dataclass(frozen=True, eq=False)
class Originals:
    places: NDArray[np.int64]
    """N: rows of the source; -1 for an image that is no longer there."""
    at: Callable[[int], Original]
    """By row of the source."""
    in_order: Callable[[], Iterator[Original]]
    """By rising row of the source: rows of Parquet are read in one go."""
    are_files: bool = False

    def of(self, row: int) -> Original:
        place = int(self.places[row])
        if place < 0:
            return _GONE
        try:
            return self.at(place)
        except (OSError, ValueError, StopIteration) as error:  # a source that changes meanwhile
            return BadImage(str(error) or type(error).__name__)

    @property
    def n_gone(self) -> int:
        return int((self.places < 0).sum())


def originals_of(found: Found, names: Sequence[str]) -> tuple[Originals | None, str | None]:
    """Of a run's images by their names; or none, and why."""
    at: Callable[[int], Original]
    in_order: Callable[[], Iterator[Original]]
    if isinstance(found, VectorSet):
        if found.files is None:
            return (
                None,
                "The run grouped feature vectors, and nothing tells which images they are of",
            )
        files: Sequence[Path] = found.files
        at, in_order, are_files = files.__getitem__, partial(iter, files), True
    elif isinstance(found, ImageSet):
        at, in_order, are_files = found.images.__getitem__, partial(iter, found.images), False
    else:
        at, in_order = _from(found), partial(found.encoded, 0)
        are_files = found.file_of is not None
    originals = Originals(places_of(found.names, names), at, in_order, are_files)
    if originals.n_gone == len(names):
        return None, "The source holds none of the run's images any more"
    return originals, None


def _from(listing: Listing) -> Callable[[int], Encoded]:
    return lambda place: next(iter(listing.encoded(place)))
