"""Listed images -> an ImageSet over the row cache: decoded and brought to size once, kept mapped.

Shapes: N images, S pixels a side, C channels (1 or 3).
"""

import hashlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decode import Header, decode_image, quiet_pillow, read_header
from dcdc.data.image_set import ImageSet, Skipped, check_side, classes_of_rows
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.row_cache import Block, RowSource, Shape, cached_rows, kept_note
from dcdc.errors import InputError
from dcdc.runtime.environment import available_cores
from dcdc.runtime.journal import Skips

USUAL_SIDES = (8, 16, 28, 32, 64, 96, 128, 160, 192, 224)
LARGEST_SIDE = 96  # unless asked for: as far as the paper goes
_SAMPLE_RUNS, _SAMPLE_RUN = 16, 64  # of headers, spread over the set
_BLOCK_ROWS, _BLOCK_BYTES = 256, 64 * 2**20  # in memory at a time
_PER_TASK = 16
_THREADS_FROM = 64
"""Pixels a side: smaller images cost less to decode than threads cost each other (the GIL)."""

Progress = Callable[[int, int], None]  # (done, total)


def decode_listing(
    listing: Listing,
    *,
    size: int | None = None,
    channels: int | None = None,
    largest_side: int = LARGEST_SIDE,
    on_bad: str = "refuse",
    progress: Progress | None = None,
    on_wait: Callable[[], None] | None = None,
    keep: bool = True,
) -> ImageSet:
    """Every image of `listing`, in its order.

    Without a `size` it is the largest usual side that is neither above the median image's shorter
    side nor above `largest_side`; without `channels`, colours where any image has them. A bad
    image is refused, or with `on_bad="skip"` left out and recorded. Without `keep` all stays in
    memory and out of the cache.
    """
    check_side(size)
    check_on_bad(on_bad)

    def refuse(row: int, why: str) -> None:
        raise InputError(
            f"cannot read image {listing.names[row]} in {listing.where}: {why}",
            remedy=("repair or remove it", "use {on_bad=skip}"),
        )

    def ignore(*_: object) -> None:
        pass

    with quiet_pillow():
        if size and channels:
            shape: Shape = (size, size, channels)
        else:
            shape = _shape(listing, size, largest_side)
        source = RowSource(
            key=_key(listing, *map(str, shape)),
            n_rows=len(listing),
            shape=shape,
            blocks=partial(decoded_blocks, listing, shape),
        )
        on_skip = refuse if on_bad == "refuse" else ignore
        if not keep:
            return _image_set(listing, *_in_memory(source, on_skip))
        rows = cached_rows(source, on_skip=on_skip, progress=progress, on_wait=on_wait)
    return _image_set(listing, rows.images, rows.skipped)


def _in_memory(
    source: RowSource, on_skip: Callable[[int, str], None]
) -> tuple[NDArray[np.uint8], Skips]:
    kept, skipped = [np.empty((0, *source.shape), np.uint8)], list[tuple[int, str]]()
    for block in source.blocks(0):
        for row, why in block.skipped:
            on_skip(row, why)
        kept.append(block.pixels)
        skipped += block.skipped
    return np.concatenate(kept), tuple(skipped)


def check_on_bad(on_bad: str) -> None:
    if on_bad not in ("refuse", "skip"):
        raise InputError(f"on_bad is {on_bad!r}: give 'refuse' or 'skip'")


def _key(listing: Listing, *size: str) -> str:
    """Content, size and policy; Pillow's version because another one may decode otherwise."""
    import PIL

    policy = f"upright, on white, centre square, {PIL.__version__}"
    parts = (listing.fingerprint, str(len(listing)), *size, policy)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _image_set(listing: Listing, images: NDArray[np.uint8], skipped: Skips) -> ImageSet:
    found = tuple(Skipped(listing.names[row], why) for row, why in skipped)
    if not len(images):
        raise InputError(
            f"none of the {len(found)} images in {listing.where} can be read "
            f"({found[0].name}: {found[0].reason}): give good images"
        )
    names, targets, class_names = listing.names, listing.targets, listing.class_names
    if found:
        kept = np.delete(np.arange(len(listing)), [row for row, _ in skipped])
        names = tuple(listing.names[row] for row in kept.tolist())
        targets, class_names = classes_of_rows(targets, class_names, kept)
    return ImageSet(
        images,
        names,
        targets,
        class_names,
        found,
        left_out=listing.left_out,
        by_folder=listing.by_folder,
    )


def _shape(listing: Listing, size: int | None, largest: int) -> Shape:
    """As chosen when these images were first seen: looking at them again takes time."""
    asked = str(size) if size else f"at most {largest}"
    with kept_note(_key(listing, asked)) as note:
        if not note:
            note["shape"] = _choose_shape(listing, size, largest)
        side, _, channels = note["shape"]
    return side, side, channels


def _choose_shape(listing: Listing, size: int | None, largest: int) -> Shape:
    sample = list(_headers(_spread(listing)))
    side = size or min(largest, _usual_side([header.shorter_side for header in sample]))
    # One colour image among a million grey ones makes a set of colour images.
    is_grey = all(header.is_grey for header in sample) and all(
        header.is_grey for header in _headers(listing.encoded(0))
    )
    return side, side, 1 if is_grey else 3


def _spread(listing: Listing) -> Iterator[Encoded]:
    """All images of a small set, or short runs of them all over a large one."""
    if len(listing) <= _SAMPLE_RUNS * _SAMPLE_RUN:
        return listing.encoded(0)
    starts = np.linspace(0, len(listing) - _SAMPLE_RUN, _SAMPLE_RUNS).astype(int).tolist()
    return chain.from_iterable(islice(listing.encoded(start), _SAMPLE_RUN) for start in starts)


def _headers(images: Iterable[Encoded]) -> Iterator[Header]:
    for image in images:
        if not isinstance(image, BadImage):
            try:
                yield read_header(image)
            except BadImage:
                continue  # decoding will meet it again, and say so


def _usual_side(shorter_sides: list[int]) -> int:
    median = statistics.median(shorter_sides) if shorter_sides else 0
    return max((side for side in USUAL_SIDES if side <= median), default=USUAL_SIDES[0])


def some_are_coloured(listing: Listing) -> bool:
    """By the headers of all images of a small set, or of some all over a large one."""
    with quiet_pillow():
        return any(not header.is_grey for header in _headers(_spread(listing)))


def decoded_blocks(listing: Listing, shape: Shape, start: int) -> Iterator[Block]:
    """From a row on, a few hundred rows at a time; enter `quiet_pillow` first."""
    side, _, channels = shape

    def decode(image: Encoded) -> NDArray[np.uint8] | BadImage:
        if isinstance(image, BadImage):
            return image
        try:
            return decode_image(image, side, channels)
        except BadImage as bad:
            return bad

    def decode_some(images: list[Encoded]) -> list[NDArray[np.uint8] | BadImage]:
        return [decode(image) for image in images]

    sides = [header.shorter_side for header in _headers(islice(listing.encoded(start), _PER_TASK))]
    n_threads = 1 if max(sides, default=0) < _THREADS_FROM else available_cores()
    images = listing.encoded(start)
    with ThreadPoolExecutor(n_threads) as pool:
        while block := list(_some(images)):
            tasks = [block[i : i + _PER_TASK] for i in range(0, len(block), _PER_TASK)]
            spread = map(decode_some, tasks) if n_threads == 1 else pool.map(decode_some, tasks)
            results = list(chain.from_iterable(spread))
            good = [result for result in results if not isinstance(result, BadImage)]
            yield Block(
                pixels=np.stack(good) if good else np.empty((0, *shape), np.uint8),
                n_read=len(block),
                skipped=tuple(
                    (row, str(result))
                    for row, result in enumerate(results, start)
                    if isinstance(result, BadImage)
                ),
            )
            start += len(block)


def _some(images: Iterator[Encoded]) -> Iterator[Encoded]:
    """The next few, by number and by size."""
    n_bytes = 0
    for image in islice(images, _BLOCK_ROWS):
        yield image
        n_bytes += len(image) if isinstance(image, bytes) else 0
        if n_bytes > _BLOCK_BYTES:
            return
