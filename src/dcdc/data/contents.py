"""What a source holds: headers are read, and contents compared, but no pixels are decoded."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decode import Header, quiet_pillow, read_header
from dcdc.data.image_set import ImageSet, Skipped
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.data.load_data import find_again
from dcdc.data.vector_set import VectorSet

Progress = Callable[[int, int], None]
"""(done, total)"""
_ROWS = 4096  # of an array at a time


@dataclass(frozen=True)
class SourceContents:
    n_images: int
    """Or rows of feature vectors."""
    shape: tuple[int, ...] | None = None
    """Of one row of an array, H x W x C or D; None of encoded images."""
    headers: Sequence[Header] = ()
    """Of the encoded images that can be read."""
    unreadable: Sequence[Skipped] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    """Images of each, where classes are known."""
    duplicates: Sequence[tuple[str, str]] = ()
    """Names of images whose content came before, and of where it did."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Other files beside the images, counted by kind."""


def contents_of(
    source: str | Path, target: str | None = None, progress: Progress = lambda *_: None
) -> SourceContents:
    """Of any source that `load_data` takes. `target` as there."""
    found = find_again(source, target)
    if isinstance(found, Listing):
        return _of_listing(found, progress)
    rows = found.vectors if isinstance(found, VectorSet) else found.images
    return SourceContents(
        n_images=found.n_images,
        shape=rows.shape[1:],
        unreadable=found.skipped,
        classes=_counted_classes(found),
        duplicates=_repeated(found.names, _row_digests(rows)),
    )


def _of_listing(listing: Listing, progress: Progress) -> SourceContents:
    headers: list[Header] = []
    unreadable = []
    with quiet_pillow():
        for row, encoded in enumerate(listing.encoded(0)):
            try:
                if isinstance(encoded, BadImage):
                    raise encoded
                headers.append(read_header(encoded))
            except BadImage as bad:
                unreadable.append(Skipped(listing.names[row], str(bad)))
            progress(row + 1, len(listing))
    return SourceContents(
        n_images=len(listing),
        headers=headers,
        unreadable=unreadable,
        classes=_counted_classes(listing),
        duplicates=_repeated(listing.names, _digests(listing)),
        left_out=listing.left_out,
    )


def _counted_classes(found: Listing | ImageSet | VectorSet) -> dict[str, int]:
    if found.targets is None:
        return {}
    counts = np.bincount(found.targets, minlength=len(found.class_names)).tolist()
    return dict(zip(found.class_names, counts, strict=True))


def _repeated(names: Sequence[str], digests: Iterable[Any]) -> list[tuple[str, str]]:
    first: dict[Any, str] = {}
    found = []
    for name, digest in zip(names, digests, strict=True):
        if digest is not None and first.setdefault(digest, name) is not name:
            found.append((name, first[digest]))
    return found


def _digests(listing: Listing) -> Iterator[bytes | None]:
    """Of the encoded bytes; None for those of which no other image has as many."""
    lengths = [_length(encoded) for encoded in listing.encoded(0)]
    shared = Counter(lengths)
    for length, encoded in zip(lengths, listing.encoded(0), strict=True):
        is_alone = length is None or shared[length] == 1
        yield None if is_alone else _digest(encoded)


def _length(encoded: Encoded) -> int | None:
    if isinstance(encoded, BadImage):
        return None
    return len(encoded) if isinstance(encoded, bytes) else encoded.stat().st_size


def _digest(encoded: Encoded) -> bytes | None:
    if isinstance(encoded, bytes):
        return hashlib.sha256(encoded).digest()
    if isinstance(encoded, Path):
        with encoded.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    return None


def _row_digests(rows: NDArray[Any]) -> Iterator[bytes]:
    for start in range(0, len(rows), _ROWS):
        for row in np.ascontiguousarray(rows[start : start + _ROWS]):
            yield hashlib.sha256(row.tobytes()).digest()
