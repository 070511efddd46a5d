"""What tells a set of images from itself after a change."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.mapped import slices_within
from dcdc.data.vector_set import Data, VectorSet

_HASHED_AT_ONCE = 32 * 2**20
MOST_HASHED = 4 * 2**30
"""Bytes of a set that a run knows it by."""


def files_fingerprint(where: Path, files: Iterable[tuple[str, os.stat_result | None]]) -> str:
    """Of a resolved root, and each file's name, size and time of change; None: there is none.

    The files are not read."""
    digest = hashlib.sha256(os.fsencode(where.resolve()))
    for name, stat in files:
        digest.update(b"\0" + os.fsencode(name))
        digest.update(b"\0%d %d" % (stat.st_size, stat.st_mtime_ns) if stat else b"\0absent")
    return digest.hexdigest()


def file_fingerprint(file: Path) -> str:
    """Of one that is there."""
    return files_fingerprint(file.parent, [(file.name, file.stat())])


def stat_of(path: Path) -> os.stat_result | None:
    """None where there is no such file; a link that leads nowhere is told when it is its turn."""
    try:
        return path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in a name
        return None


def content_digest(images: NDArray[Any]) -> str:
    """Of every pixel or number, with flat memory."""
    digest = hashlib.sha256(repr(images.shape).encode())
    for rows in slices_within(images, _HASHED_AT_ONCE):
        digest.update(np.ascontiguousarray(images[rows]).data)
    return digest.hexdigest()


def source_fingerprint(source: str | Path, rows: NDArray[Any]) -> str:
    """Of the file that the rows come from, or of themselves where they lie in several."""
    file = Path(source)
    return file_fingerprint(file) if file.is_file() else content_digest(rows)


def with_targets(told: str, targets: NDArray[np.int64] | None, class_names: tuple[str, ...]) -> str:
    """Of what is told of images, and of their classes."""
    digest = hashlib.sha256(told.encode())
    if targets is not None:
        digest.update(targets.tobytes())
        digest.update("\0".join(class_names).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def set_fingerprint(data: Data) -> dict[str, str]:
    """By what it is of. Of a set of more than MOST_HASHED bytes, rows spread evenly over it."""
    rows: dict[str, NDArray[Any] | None]
    if isinstance(data, VectorSet):
        rows = {"feature vectors": data.vectors, "feature vectors of copies": data.copies}
    else:
        rows = {"pixels": data.images, "pixels of extra images": data.extra}
    found = {what: _spread_digest(array) for what, array in rows.items() if array is not None}
    found["names"] = _names_digest(data.names)
    if data.targets is not None:
        digest = hashlib.sha256(_names_digest(data.class_names).encode())
        digest.update(data.targets.tobytes())
        found["classes"] = digest.hexdigest()
    return found


def _spread_digest(array: NDArray[Any]) -> str:
    return content_digest(array[:: max(1, -(-array.nbytes // MOST_HASHED))])


def _names_digest(names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
