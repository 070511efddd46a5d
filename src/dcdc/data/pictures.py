"""The images to show of what a run groups, also where it groups their feature vectors.

Shapes: N images, S pixels a side, C channels.
"""

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.counted import counted
from dcdc.data.decode import decode_image, quiet_pillow, read_header
from dcdc.data.image_set import ImageSet
from dcdc.data.listing import BadImage
from dcdc.data.vector_set import Data
from dcdc.runtime.environment import available_cores

SIDE = 96
_CHANNELS = 3
_LOOKED_AT = 32  # files, spread over all, that tell whether any can be shown
_KEPT = 6_000  # decoded pictures: those of a page are asked for several times
_GROUND, _CROSS = 235, 150  # shades of what stands where a picture cannot be read


class FilePictures:
    """N x S x S x 3 of image files, decoded when they are asked for: a page shows few of many.

    One that cannot be read is a crossed-out square, and is told of by `missing`.
    """

    def __init__(self, files: Sequence[Path], side: int) -> None:
        self._files = files
        self.shape = (len(files), side, side, _CHANNELS)
        self.missing: dict[int, str] = {}
        """Rows that were asked for and cannot be read, and why."""
        self._known: dict[int, NDArray[np.uint8]] = {}

    def gather(self, rows: NDArray[np.integer]) -> NDArray[np.uint8]:
        found = np.empty((len(rows), *self.shape[1:]), np.uint8)
        wanted: list[int] = rows.tolist()
        new = [row for row in dict.fromkeys(wanted) if row not in self._known]
        decoded: dict[int, NDArray[np.uint8]] = {}
        with quiet_pillow(), ThreadPoolExecutor(available_cores()) as pool:
            decoded.update(zip(new, pool.map(self._decoded, new), strict=True))
        for at, row in enumerate(wanted):
            found[at] = decoded[row] if row in decoded else self._known[row]
        for row in new[: max(0, _KEPT - len(self._known))]:
            self._known[row] = decoded[row]
        return found

    def _decoded(self, row: int) -> NDArray[np.uint8]:
        side = self.shape[1]
        try:
            return decode_image(self._files[row], side, _CHANNELS)
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
    sides, fault = _looked_at(data.files)
    if not sides:
        return None, f"The images of the feature vectors cannot be shown: {fault}."
    return FilePictures(data.files, max(8, min(SIDE, round(statistics.median(sides))))), None


def missing_pictures(pictures: Pictures | None, names: Sequence[str]) -> str | None:
    """What to say of those that were to be shown and could not be read."""
    if not isinstance(pictures, FilePictures) or not pictures.missing:
        return None
    row, why = min(pictures.missing.items())
    n = len(pictures.missing)
    which = f"{counted(n, 'image')} cannot"
    return f"{which} be read and {'is' if n == 1 else 'are'} crossed out, first {names[row]}: {why}"


def _looked_at(files: Sequence[Path]) -> tuple[list[int], str]:
    """Shorter sides of some images that can be read, and what is wrong with the first other."""
    sides: list[int] = []
    fault = ""
    rows = np.unique(np.linspace(0, len(files) - 1, _LOOKED_AT).astype(int)).tolist()
    with quiet_pillow():
        for row in rows:
            try:
                sides.append(read_header(files[row]).shorter_side)
            except BadImage as bad:
                fault = fault or f"{files[row]}: {bad}"
    return sides, fault


def _crossed_out(side: int) -> NDArray[np.uint8]:
    picture = np.full((side, side, _CHANNELS), _GROUND, np.uint8)
    steps = np.arange(side)
    picture[steps, steps] = picture[steps, side - 1 - steps] = _CROSS
    return picture
