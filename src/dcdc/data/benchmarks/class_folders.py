"""A folder of image files for each class, with the classes in an order of their own."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dcdc.data.benchmarks.original_files import naming_what_cannot_be_read
from dcdc.data.fingerprint import files_fingerprint
from dcdc.data.folder import file_inside, printable
from dcdc.data.listing import Encoded, Listing
from dcdc.errors import InputError

_SUFFIXES = (".jpeg", ".jpg")
_MOST_NAMED = 20  # ids in one line of a message


def class_files(where: Path, folders: Mapping[str, Path]) -> list[tuple[Path, int]]:
    """The images of each folder, sorted, with its number; each must have at least one."""
    with naming_what_cannot_be_read(where):
        found = {wnid: _image_files(folder) for wnid, folder in folders.items()}
    missing = [wnid for wnid, files in found.items() if not files]
    if missing:
        named = ", ".join(missing[:_MOST_NAMED])
        rest = len(missing) - _MOST_NAMED
        raise InputError(
            f"{where} lacks images of {named}{f' and {rest} more classes' if rest > 0 else ''}: "
            "unpack these classes there, or get it again"
        )
    return [(path, code) for code, files in enumerate(found.values()) for path in files]


def files_listing(
    root: Path, files: Sequence[tuple[Path, int]], class_names: tuple[str, ...]
) -> Listing:
    """Files below `root` with the codes of their classes."""
    names = [path.relative_to(root).as_posix() for path, _ in files]
    resolved_root = root.resolve()

    def encoded(start: int) -> Iterator[Encoded]:
        return (file_inside(resolved_root, name) for name in names[start:])

    return Listing(
        where=str(root),
        names=tuple(map(printable, names)),
        encoded=encoded,
        fingerprint=files_fingerprint(root, ((name, _stat(root / name)) for name in names)),
        targets=np.array([code for _, code in files], np.int64),
        class_names=class_names,
    )


def _image_files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        path for path in paths if path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")
    ]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:  # a link that leads nowhere is told when it is its turn
        return None
