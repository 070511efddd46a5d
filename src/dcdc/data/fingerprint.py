"""What tells a set of images from itself after a change."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.mapped import release_pages, require_whole
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


def content_digest(images: NDArray[Any]) -> str:
    """Of every pixel or number, with flat memory."""
    digest = hashlib.sha256(repr(images.shape).encode())
    step = max(1, _HASHED_AT_ONCE // images[0].nbytes)
    for start in range(0, len(images), step):
        require_whole(images)
        digest.update(np.ascontiguousarray(images[start : start + step]).data)
        release_pages(images)
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
