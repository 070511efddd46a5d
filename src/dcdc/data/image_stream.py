"""Images, or feature vectors, straight to whoever asks, a block at a time: nothing is kept, in
memory or in the cache.

Shapes: N images of the source, S pixels a side, C channels (1 or 3), D features.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decode import quiet_pillow, square_images
from dcdc.data.decoded import decoded_blocks, some_are_coloured
from dcdc.data.fingerprint import source_fingerprint, with_targets
from dcdc.data.image_set import ImageSet
from dcdc.data.listing import Listing
from dcdc.data.mapped import slices_of
from dcdc.data.row_cache import Block
from dcdc.data.sources import Given, find_images, readable, require_kind
from dcdc.data.vector_files import load_vectors
from dcdc.data.vector_rows import Reading
from dcdc.data.vector_set import VectorSet
from dcdc.errors import InputError


@dataclass(frozen=True, eq=False)
class ImageStream:
    """Of images, or of feature vectors: blocks hold what the source has."""

    where: str
    """The source, for messages."""
    names: Sequence[str]
    fingerprint: str
    """Another one as soon as any image, size or target may be another."""
    read: Callable[[int, int], Iterator[Block]]
    """(start, some): blocks of about so many rows; the same ones from any block's end on."""
    targets: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    file_of: Callable[[int], Path] | None = None
    """Where the file of a row lies, for sources whose images are files."""
    loses_colour: Callable[[], bool] = lambda: False
    """Whether coloured images are read as grey ones; looks at some of them."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Files of the source that are no images to read here, counted by kind."""

    def __len__(self) -> int:
        return len(self.names)

    def blocks(self, start: int, n_rows: int) -> Iterator[Block]:
        """About `n_rows` of the source at a time; the next ones are read meanwhile."""
        with quiet_pillow(), ThreadPoolExecutor(1) as ahead:
            source = self.read(start, n_rows)
            coming = ahead.submit(next, source, None)
            while (block := coming.result()) is not None:
                coming = ahead.submit(next, source, None)
                yield block


def open_stream(
    source: Given, *, size: int, channels: int, target: str | None = None
) -> ImageStream:
    """Any source that `load_images` takes, square, at one size and with so many channels.

    Files come in every mode and are converted; an array of other channels is refused.
    """
    # Named sets are square already, so they can wait for their size until they are asked for.
    at_once = size if isinstance(source, str | Path) and Path(source).is_file() else None
    with readable(source):
        found = find_images(source, at_once, target)
    if isinstance(found, Listing):
        return _stream_listing(found, size, channels)
    assert isinstance(source, str | Path)
    return _stream_arrays(found, source, size, channels)


def _stream_listing(listing: Listing, size: int, channels: int) -> ImageStream:
    shape = (size, size, channels)

    def read(start: int, n_rows: int) -> Iterator[Block]:
        waiting: list[Block] = []
        for block in decoded_blocks(listing, shape, start):
            waiting.append(block)
            if sum(each.n_read for each in waiting) >= n_rows:
                yield _joined(waiting)
                waiting.clear()
        if waiting:
            yield _joined(waiting)

    return ImageStream(
        where=listing.where,
        names=listing.names,
        fingerprint=with_targets(
            f"{listing.fingerprint} {shape}", listing.targets, listing.class_names
        ),
        read=read,
        targets=listing.targets,
        class_names=listing.class_names,
        file_of=listing.file_of,
        loses_colour=partial(some_are_coloured, listing) if channels == 1 else lambda: False,
        left_out=listing.left_out,
    )


def _stream_arrays(
    image_set: ImageSet, source: str | Path, size: int, channels: int
) -> ImageStream:
    if image_set.channels != channels:
        raise InputError(
            f"the model was trained on images of {channels} channel(s), those of {source} have "
            f"{image_set.channels}: convert them first"
        )
    images = image_set.images

    def read(start: int, n_rows: int) -> Iterator[Block]:
        for rows in slices_of(images, n_rows, start):
            pixels = np.array(square_images(images[rows], size), order="C")
            yield Block(pixels, n_read=len(pixels))

    told = f"{source_fingerprint(source, images)} {(size, size, channels)}"
    return ImageStream(
        where=str(source),
        names=image_set.names,
        fingerprint=with_targets(told, image_set.targets, image_set.class_names),
        read=read,
        targets=image_set.targets,
        class_names=image_set.class_names,
    )


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        pixels=np.concatenate([block.pixels for block in blocks]),
        n_read=sum(block.n_read for block in blocks),
        skipped=tuple(skipped for block in blocks for skipped in block.skipped),
    )


def holds_feature_vectors(source: Given, column: str | None = None) -> bool:
    """Whether a source that is there holds feature vectors, by headers alone."""
    with readable(source):
        return require_kind(source).has_vectors(str(source), column)


def open_vector_stream(
    source: str | Path,
    *,
    n_features: int,
    target: str | None = None,
    column: str | None = None,
    on_bad: str = "refuse",
) -> ImageStream:
    """Any source of feature vectors that `load_data` takes, of so many features each.

    Rows that were left out come last, so that whoever reads them hears of each.
    """
    reading = Reading(target, column, on_bad)
    with readable(source):
        found = load_vectors(source, reading)
    if found.n_features != n_features:
        raise InputError(
            f"the model was trained on vectors of {n_features} features, those of {source} have "
            f"{found.n_features}: give those of the same backbone"
        )
    return _stream_vectors(found, source, column)


def _stream_vectors(found: VectorSet, source: str | Path, column: str | None) -> ImageStream:
    vectors, files = found.vectors, found.files
    n_kept = len(vectors)
    left_out = tuple((n_kept + at, each.reason) for at, each in enumerate(found.skipped))

    def read(start: int, n_rows: int) -> Iterator[Block]:
        for some in slices_of(vectors, n_rows, start):
            rows = np.array(vectors[some], np.float32, order="C")
            yield Block(rows, n_read=len(rows))
        rest = tuple(each for each in left_out if each[0] >= start)
        if rest:
            yield Block(np.empty((0, found.n_features), np.float32), len(rest), rest)

    names: Sequence[str] = found.names
    if found.skipped:
        names = (*found.names, *(each.name for each in found.skipped))
    told = f"{source_fingerprint(source, vectors)} {vectors.shape} {column}"
    return ImageStream(
        where=str(source),
        names=names,
        fingerprint=with_targets(told, found.targets, found.class_names),
        read=read,
        targets=found.targets,
        class_names=found.class_names,
        file_of=None if files is None else files.__getitem__,
    )
