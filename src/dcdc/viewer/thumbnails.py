"""Small copies of originals, made once and kept in the cache; an image's own bytes at full size."""

import hashlib
import io
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from dcdc.data.cache_folder import cache_folder
from dcdc.data.decode import Source
from dcdc.data.listing import BadImage
from dcdc.data.web_images import JPEG, PNG, enlarged, full_copy, own_type, small_copy
from dcdc.runtime.atomic_files import atomic_file
from dcdc.runtime.environment import available_cores
from dcdc.viewer.originals import Original

FOLDER = "thumbnails"
SIDE = 160
_END = b"\xff\xd9"  # of a JPEG; a power cut may have left a part
_FULL_SIDE = 512  # that small pixels are enlarged to
_POLICY = f"upright, on white, {SIDE}, 1"


class Picture(NamedTuple):
    kind: str
    """Its MIME type."""
    content: bytes | BinaryIO


class Thumbnails:
    def __init__(self) -> None:
        # One core is left to the browser, which is on this machine too.
        self._at_work = threading.Semaphore(max(1, available_cores() - 1))
        self._writing = [threading.Lock() for _ in range(64)]

    def of(self, original: Original) -> Picture:
        """Raises BadImage."""
        if isinstance(original, np.ndarray):
            return Picture(PNG, enlarged(original, SIDE))
        if isinstance(original, BadImage):
            raise original
        key = _key(original)
        file = cache_folder() / FOLDER / key[:2] / f"{key[2:]}.jpg"
        with self._writing[int(key[:2], 16) % len(self._writing)]:
            with suppress(OSError):
                kept = file.read_bytes()
                if kept.endswith(_END):
                    return Picture(JPEG, kept)
            with self._at_work:
                made = small_copy(original, SIDE)
            with (
                suppress(OSError),
                atomic_file(file, lasts=False) as temporary,
            ):  # a full disk: not kept
                temporary.write_bytes(made)
        return Picture(JPEG, made)


def clear_thumbnails() -> None:
    """Removes every one that was kept."""
    for file in (cache_folder() / FOLDER).glob("??/*.jpg"):
        with suppress(OSError):  # another process does the same
            file.unlink()


def full_size(original: Original) -> Picture:
    """The file's own bytes where a browser may have them; raises BadImage."""
    if isinstance(original, np.ndarray):
        return Picture(PNG, enlarged(original, _FULL_SIDE))
    if isinstance(original, BadImage):
        raise original
    file = _opened(original)
    kind = None
    try:
        kind = own_type(file)
        return Picture(JPEG, full_copy(file)) if kind is None else Picture(kind, file)
    finally:
        if kind is None:
            file.close()


def _opened(original: Path | bytes) -> BinaryIO:
    """Once, so that the bytes that are sent are those that were looked at."""
    if isinstance(original, bytes):
        return io.BytesIO(original)
    try:
        if not original.is_file():
            raise BadImage("no such file")
        return original.open("rb")
    except OSError as error:
        raise BadImage(error.strerror or "cannot be read") from None


def _key(original: Source) -> str:
    """Another one as soon as the image may be another."""
    digest = hashlib.sha256(_POLICY.encode())
    if isinstance(original, Path):
        try:
            found = original.stat()
        except OSError as error:
            raise BadImage(error.strerror or "no such file") from None
        digest.update(
            f"{original}\0{found.st_size} {found.st_mtime_ns}".encode(errors="surrogateescape")
        )
    else:
        assert isinstance(original, bytes)
        digest.update(original)
    return digest.hexdigest()[:40]
