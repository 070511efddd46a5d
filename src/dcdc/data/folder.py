"""A folder of images, nested or flat, with or without class sub-folders."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data import heic
from dcdc.data.fingerprint import files_fingerprint
from dcdc.data.left_out import kind_of, told
from dcdc.data.listing import BadImage, Encoded, Listing
from dcdc.errors import InputError
from dcdc.printable import utf8_name

_NO_SUCH_FILE = "no such file, or a link that leads nowhere"
IMAGE_EXTENSIONS = ("jpg", "jpeg", "jfif", "png", "webp", "avif", "tif", "tiff", "gif", "bmp")


def image_extensions() -> tuple[str, ...]:
    """Of the files that are read here."""
    return (*IMAGE_EXTENSIONS, *(heic.EXTENSIONS if heic.is_readable() else ()))


def list_folder(folder: Path, *, with_classes: bool = True) -> Listing:
    """Every image below `folder`, in the order of their relative paths, which are their names.

    The first-level sub-folder is the class if there are at least two and no image lies beside
    them, unless it is to have none.
    """
    root = folder.resolve()
    left_out: Counter[str] = Counter()
    files: list[str] = []
    doubtful: set[int] = set()

    def found() -> Iterator[tuple[str, os.stat_result]]:
        for name in files_below(root, image_extensions(), left_out):
            own = os.lstat(f"{root}/{name}")  # a Path costs three times as much
            yield name, own
            if not stat.S_ISREG(own.st_mode):
                doubtful.add(len(files))
                with suppress(OSError):
                    yield name, (root / name).stat()
            files.append(name)

    try:
        fingerprint = files_fingerprint(root, found())
    except OSError as error:
        raise _unreadable(error) from None
    if not files:
        others = f", but {told(left_out)}" if left_out else ""
        raise InputError(
            f"no image in folder {folder}{others}: give one with {', '.join(image_extensions())} "
            "files"
        )

    def encoded(start: int) -> Iterator[Encoded]:
        for row in range(start, len(files)):
            name = files[row]
            yield file_inside(root, name) if row in doubtful else root / name

    names = tuple(map(utf8_name, files))
    targets, class_names = _classes(names) if with_classes else (None, ())
    return Listing(
        where=str(folder),
        names=names,
        encoded=encoded,
        fingerprint=fingerprint,
        targets=targets,
        class_names=class_names,
        file_of=lambda row: root / files[row],
        left_out=left_out,
        by_folder=targets is not None,
    )


def files_below(
    root: Path, extensions: Sequence[str], left_out: Counter[str] | None = None
) -> Iterator[str]:
    """Relative posix paths, sorted, one folder in memory at a time; hidden ones are passed over.
    Others are counted in `left_out`, by kind."""
    others = Counter() if left_out is None else left_out
    waiting = [""]
    while waiting:
        name = waiting.pop()
        if name and not name.endswith("/"):
            yield name
        else:
            waiting += sorted(_children(root, name, extensions, others), reverse=True)


def _children(
    root: Path, parent: str, extensions: Sequence[str], left_out: Counter[str]
) -> Iterator[str]:
    """A folder's name ends in "/", so that it sorts as the paths below it do."""
    try:
        with os.scandir(root / parent) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield f"{parent}{name}/"
                elif entry.is_symlink() and os.path.isdir(entry):  # noqa: PTH112 - loops are no error
                    raise InputError(
                        f"{entry.path} is a link to a folder, which is not followed: put the "
                        "folder itself there, or remove the link"
                    )
                elif "." in name and name.rpartition(".")[2].lower() in extensions:
                    yield parent + name
                elif (kind := kind_of(name)) is not None:
                    left_out[kind] += 1
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> InputError:
    return InputError(
        f"cannot read folder {error.filename}: {error.strerror}; check the path and its permissions"
    )


def file_inside(root: Path, name: str) -> Encoded:
    """A file by its path relative to a resolved folder, unless the path or a link leads out."""
    path = root / name
    if not os.path.lexists(path):  # a table's names of files that it holds itself: often thousands
        return BadImage(_NO_SUCH_FILE)
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
        return BadImage(_NO_SUCH_FILE)
    if not target.is_relative_to(root):
        return BadImage("a path or link that leads out of the folder")
    return path if target.is_file() else BadImage("not a regular file")


def _classes(names: Sequence[str]) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    class_names = sorted({name.partition("/")[0] for name in names})
    if len(class_names) < 2 or not all("/" in name for name in names):
        return None, ()
    codes = {name: code for code, name in enumerate(class_names)}
    targets = (codes[name.partition("/")[0]] for name in names)
    return np.fromiter(targets, np.int64, len(names)), tuple(class_names)
