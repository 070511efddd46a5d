"""Named arrays in one `.npz` file, read without pickle."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcdc.runtime.atomic_files import atomic_file


class DamagedArraysError(Exception):
    """In one line, what cannot be read."""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The same arrays give the same bytes."""
    content: dict[str, Any] = dict(arrays)
    with atomic_file(path) as temporary:
        np.savez_compressed(temporary, **content)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        opened = np.load(path, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise DamagedArraysError("not an .npz file")
        with opened:
            return {name: opened[name] for name in opened.files}
    # A torn zip file surfaces as any of these.
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedArraysError(" ".join(str(error).split()) or type(error).__name__) from None
