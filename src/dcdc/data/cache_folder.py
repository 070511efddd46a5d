"""Where downloads and decoded images are kept: `DCDC_DATA`, or the user's cache folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dcdc.errors import InputError
from dcdc.runtime.environment import expanded

VARIABLE = "DCDC_DATA"


def cache_folder() -> Path:
    """`downloads/` holds the benchmarks' files, `decoded/` images brought to their size,
    `thumbnails/` small copies for people."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return expanded(chosen)
    import platformdirs

    return platformdirs.user_cache_path("dcdc")


@contextmanager
def keeping(what: str, folder: Path) -> Iterator[None]:
    """A fault of the disk inside the block is the person's to mend: it says where and how."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot keep {what} in {folder}: {error.strerror or error}; make room, check the "
            f"permissions, or name another folder by {VARIABLE}"
        ) from None
