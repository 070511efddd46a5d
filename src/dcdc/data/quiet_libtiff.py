"""libtiff's own lines on stderr, about files that are told of as bad images anyhow: kept quiet."""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import PIL

_HANDLERS = ("TIFFSetErrorHandler", "TIFFSetErrorHandlerExt", "TIFFSetWarningHandler")
_MAPS = Path("/proc/self/maps")


@cache
def quiet_libtiff() -> None:
    """Once for the process; nothing happens where Pillow's libtiff is not found."""
    for library in _libraries():
        with suppress(OSError):
            loaded = ctypes.CDLL(library)
            for name in _HANDLERS:
                with suppress(AttributeError):
                    getattr(loaded, name)(None)


def _libraries() -> Iterator[str]:
    """Those in use, by Linux's own list, and those that come with Pillow elsewhere."""
    if _MAPS.exists():
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        yield from dict.fromkeys(
            line.split(maxsplit=5)[5] for line in lines if "libtiff" in line.rpartition("/")[2]
        )
    else:
        for path in Path(PIL.__file__).parent.glob(".dylibs/libtiff*"):
            yield str(path)
