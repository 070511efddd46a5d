"""The images to show of what a run groups, also where it groups their feature vectors.

Shapes: N images, S pixels a side, C channels.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decode import decode_image, quiet_pillow, read_header
from dcdc.data.image_set import ImageSet
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.load_data import Found, file_of, places_of
from dcdc.data.vector_set import Data, VectorSet
from dcdc.printable import counted
from dcdc.runtime.environment import available_cores

SIDE = 96
_CHANNELS = 3
_LOOKED_AT = 32  # files, spread over all, that tell whether any can be shown
_KEPT = 6_000  # decoded pictures: those of a page are asked for several times
SourcesOf = Callable[[Sequence[int]], Iterable[Encoded]]
"""Where the images of some rows lie, which rise."""
_GROUND, _CROSS = 235, 150  # shades of what stands where a picture cannot be read


class FilePictures:
    """N x S x S x 3 of image files, or of encoded images, decoded when they are asked for: a page
    shows few of many.

    One that cannot be read is a crossed-out square, and is told of by `missing`.
    """

    def __init__(self, n_images: int, side: int, sources_of: SourcesOf) -> None:
        self._sources_of = sources_of
        self.shape = (n_images, side, side, _CHANNELS)
        self.missing: dict[int, str] = {}
        """Rows that were asked for and cannot be read, and why."""
        self._known: dict[int, NDArray[np.uint8]] = {}

    def gather(self, rows: NDArray[np.integer]) -> NDArray[np.uint8]:
        found = np.empty((len(rows), *self.shape[1:]), np.uint8)
        wanted: list[int] = rows.tolist()
        new = sorted({row for row in wanted if row not in self._known})
        decoded: dict[int, NDArray[np.uint8]] = {}
        with quiet_pillow(), ThreadPoolExecutor(available_cores()) as pool:
            sources = self._sources_of(new)
            decoded.update(zip(new, pool.map(self._decoded, new, sources), strict=True))
        for at, row in enumerate(wanted):
            found[at] = decoded[row] if row in decoded else self._known[row]
        for row in new[: max(0, _KEPT - len(self._known))]:
            self._known[row] = decoded[row]
        return found

    def _decoded(self, row: int, source: Encoded) -> NDArray[np.uint8]:
        side = self.shape[1]
        try:
            if isinstance(source, BadImage):
                raise source
            return decode_image(source, side, _CHANNELS)
        except BadImage as bad:
            self.missing[row] = str(bad)
        return _crossed_out(side)


Pictures = NDArray[np.uint8] | FilePictures
"""Of every image, N x S x S x C."""


def pictures_of(data: Data) -> tuple[Pictures | None, str | None]:
    """Or none, and why."""
    if isinstance(data, ImageSet):
        return data.images, None
    if data.files is None:
        return None, "The run grouped feature vectors, and nothing tells which images they are of."
    files = data.files
    found, fault = _lazily(len(files), lambda rows: (files[row] for row in rows), SIDE)
    if found is None:
        return None, f"The images of the feature vectors cannot be shown: {fault}."
    return found, None


def original_pictures(found: Found, names: Sequence[str], at_most: int) -> FilePictures | None:
    """Of the images called `names`, from the source as it lies there: at the size they have, up to
    so many pixels a side. None where it holds pixels alone, or none that can be read."""
    if isinstance(found, ImageSet) or (isinstance(found, VectorSet) and found.files is None):
        return None
    places = places_of(found.names, names)
    return _lazily(len(names), partial(_sources_among, found, places), at_most)[0]


def _sources_among(
    found: Listing | VectorSet, places: NDArray[np.int64], rows: Sequence[int]
) -> Iterator[Encoded]:
    """In the order of `rows`, which rise; rows of a table are read in one go."""
    at = file_of(found)
    wanted = {int(places[row]) for row in rows if places[row] >= 0}
    encoded: dict[int, Encoded] = {}
    if at is None and wanted and isinstance(found, Listing):
        first, last = min(wanted), max(wanted)
        rising = zip(range(first, last + 1), found.encoded(first), strict=False)
        encoded = {place: source for place, source in rising if place in wanted}
    for row in rows:
        place = int(places[row])
        if place < 0:
            yield BadImage("no longer in the source")
        else:
            yield at(place) if at is not None else encoded[place]


def _lazily(n_images: int, sources_of: SourcesOf, at_most: int) -> tuple[FilePictures | None, str]:
    """At the usual side of some of them; or none, and what is wrong with the first."""
    rows = np.unique(np.linspace(0, n_images - 1, _LOOKED_AT).astype(int)).tolist()
    sides: list[int] = []
    fault = ""
    with quiet_pillow():
        for source in sources_of(rows):
            try:
                if isinstance(source, BadImage):
                    raise source
                sides.append(read_header(source).shorter_side)
            except BadImage as bad:
                fault = fault or f"{source if isinstance(source, Path) else 'one of them'}: {bad}"
    if not sides:
        return None, fault
    side = max(8, min(at_most, round(statistics.median(sides))))
    return FilePictures(n_images, side, sources_of), fault


def missing_pictures(pictures: Pictures | None, names: Sequence[str]) -> str | None:
    """What to say of those that were to be shown and could not be read."""
    if not isinstance(pictures, FilePictures) or not pictures.missing:
        return None
    row, why = min(pictures.missing.items())
    n = len(pictures.missing)
    which = f"{counted(n, 'image')} cannot"
    return f"{which} be read and {'is' if n == 1 else 'are'} crossed out, first {names[row]}: {why}"


def _crossed_out(side: int) -> NDArray[np.uint8]:
    picture = np.full((side, side, _CHANNELS), _GROUND, np.uint8)
    steps = np.arange(side)
    picture[steps, steps] = picture[steps, side - 1 - steps] = _CROSS
    return picture
