"""Many small images in one picture, from which the page cuts what it shows.

Shapes: N images, H = W pixels a side, C channels (1 or 3).
"""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import Pictures
from dcdc.report.figures import data_uri

SIDE = 32  # pixels; larger images are made smaller
BUDGET = 7_500_000  # bytes of a sheet before base64, which makes them a third more

_BLOCK = 8  # JPEG's; tiles that share none do not blur into each other
_EXACT = 16  # up to this side every pixel counts, and few bytes are saved by losing some
_ROWS_AT_A_TIME = 256
_LOSSY = ((SIDE, 85), (SIDE, 70), (24, 70), (16, 70), (16, 40))  # side, quality


@dataclass(frozen=True)
class Sheet:
    """Tile i is at column `i % columns`, row `i // columns`, `pitch` pixels apart."""

    uri: str
    side: int
    pitch: int
    columns: int


def make_sheet(images: Pictures, rows: Sequence[int], *, budget: int = BUDGET) -> Sheet | None:
    """The images (N x H x W x C) at these rows in their order; coarser until the budget holds."""
    if not len(rows):
        return None
    own_side = images.shape[1]
    if own_side <= _EXACT and (sheet := _sheet(images, rows, own_side, None, budget)):
        return sheet
    for side, quality in _LOSSY:
        if sheet := _sheet(images, rows, min(side, own_side), quality, budget):
            return sheet
    return None


def _sheet(
    images: Pictures, rows: Sequence[int], side: int, quality: int | None, budget: int
) -> Sheet | None:
    """Without a quality every pixel stays as it is; None if it takes more than the budget."""
    pitch = side if quality is None else math.ceil(side / _BLOCK) * _BLOCK
    columns = math.ceil(math.sqrt(len(rows)))
    height = math.ceil(len(rows) / columns)
    canvas = np.zeros((height * pitch, columns * pitch, images.shape[3]), np.uint8)
    for index, tile in enumerate(_tiles(images, rows, side)):
        top, left = index // columns * pitch, index % columns * pitch
        margin = (0, pitch - side)
        # What is left of the last block repeats the edge.
        canvas[top : top + pitch, left : left + pitch] = np.pad(
            tile, (margin, margin, (0, 0)), mode="edge"
        )
    content, media_type = encode(as_picture(canvas), quality)
    if len(content) > budget:
        return None
    return Sheet(data_uri(content, media_type), side, pitch, columns)


def _tiles(images: Pictures, rows: Sequence[int], side: int) -> Iterator[NDArray[np.uint8]]:
    at = np.asarray(rows, dtype=np.int64)
    for start in range(0, len(at), _ROWS_AT_A_TIME):
        # A mapped file's pages are given back between: the map reads all over it.
        for tile in gather_rows(images, at[start : start + _ROWS_AT_A_TIME]):
            if side < tile.shape[0]:
                small = as_picture(tile).resize((side, side), Image.Resampling.BOX)
                tile = np.asarray(small).reshape(side, side, -1)
            yield tile


def encode(picture: Image.Image, quality: int | None) -> tuple[bytes, str]:
    """Content and media type; without a quality every pixel stays as it is."""
    buffer = io.BytesIO()
    if quality is None:
        picture.save(buffer, format="PNG", optimize=True)
        return buffer.getvalue(), "image/png"
    # On CIFAR-10 WebP saved 7 % at the same error, took 15 times as long, and its blocks look
    # beyond themselves. Full colour resolution: half of it blurs what is 32 pixels wide.
    picture.save(buffer, format="JPEG", quality=quality, subsampling=0)
    return buffer.getvalue(), "image/jpeg"


def as_picture(image: NDArray[np.uint8]) -> Image.Image:
    """H x W x C."""
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else np.ascontiguousarray(image))
