"""A folder of images, nested or flat, with or without class sub-folders."""

import os
import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dcdc.data.decode import decode_image, quiet_pillow, read_header
from dcdc.data.image_set import ImageSet, Skipped, check_side
from dcdc.data.listing import BadImage
from dcdc.data.targets import encode_targets
from dcdc.errors import InputError

IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "avif", "tif", "tiff", "gif", "bmp")
USUAL_SIDES = (8, 16, 28, 32, 64, 96, 128, 224)
_PER_TASK = 16  # tiny images cost less than handing each to a thread
_IN_FLIGHT = 16 * _PER_TASK  # so that memory stays flat, and Ctrl-C is quick

Progress = Callable[[int, int], None]  # (done, total)
T = TypeVar("T")


def load_folder(
    folder: Path,
    *,
    size: int | None = None,
    on_bad: str = "refuse",
    progress: Progress | None = None,
) -> ImageSet:
    """Every image below `folder`, in the order of their relative paths, which are their names.

    The first-level sub-folder is the class if there are at least two and no image lies beside
    them. Without a `size` it is the largest usual side that is not above the median image's
    shorter side. A bad image is refused, or with `on_bad="skip"` left out and recorded.
    """
    check_side(size)
    check_on_bad(on_bad)
    files = _image_files(folder)
    skipped: dict[str, str] = {}

    def note_bad(name: str, error: BadImage) -> None:
        if on_bad == "refuse":
            raise InputError(
                f"cannot read image {_printable(name)} in {folder}: {error}; repair or remove it, "
                "or use --on-bad skip"
            )
        skipped[name] = str(error)

    with quiet_pillow(), ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = dict(_good_results(pool, read_header, files, note_bad))
        side = size or _usual_side(header.shorter_side for header in headers.values())
        channels = 1 if all(header.is_grey for header in headers.values()) else 3
        decode = partial(decode_image, size=side, channels=channels)
        images = np.empty((len(headers), side, side, channels), np.uint8)
        names: list[str] = []
        files = {name: files[name] for name in headers}
        for name, pixels in _good_results(pool, decode, files, note_bad, progress):
            images[len(names)] = pixels
            names.append(name)
    if not names:
        name, reason = min(skipped.items())
        raise InputError(
            f"none of the {len(skipped)} images in {folder} can be read ({_printable(name)}: "
            f"{reason}): give a folder with good images"
        )
    targets, class_names = _targets(names)
    return ImageSet(
        images=images[: len(names)],
        names=tuple(map(_printable, names)),
        targets=targets,
        class_names=class_names,
        skipped=tuple(Skipped(_printable(name), skipped[name]) for name in sorted(skipped)),
    )


def check_on_bad(on_bad: str) -> None:
    if on_bad not in ("refuse", "skip"):
        raise InputError(f"on_bad is {on_bad!r}: give 'refuse' or 'skip'")


def _image_files(folder: Path) -> dict[str, Path]:
    """Relative posix path -> path, sorted; hidden files and folders are passed over."""

    def refuse(error: OSError) -> None:
        raise InputError(
            f"cannot read folder {error.filename}: {error.strerror}; check the path and its "
            "permissions"
        )

    files: dict[str, Path] = {}
    for parent, subfolders, file_names in os.walk(folder, onerror=refuse):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in subfolders:
            if Path(parent, name).is_symlink():
                raise InputError(
                    f"{Path(parent, name)} is a link to a folder, which is not followed: put the "
                    "folder itself there, or remove the link"
                )
        for name in file_names:
            path = Path(parent, name)
            if not name.startswith(".") and path.suffix[1:].lower() in IMAGE_EXTENSIONS:
                files[path.relative_to(folder).as_posix()] = path
    if not files:
        raise InputError(
            f"no image in folder {folder}: give one with {', '.join(IMAGE_EXTENSIONS)} files"
        )
    return dict(sorted(files.items()))


def _good_results(
    pool: ThreadPoolExecutor,
    read: Callable[[Path], T],
    files: dict[str, Path],
    note_bad: Callable[[str, BadImage], None],
    progress: Progress | None = None,
) -> Iterator[tuple[str, T]]:
    """`read` of every file, in order, by many threads (Pillow decodes without the GIL)."""

    def read_or_fault(name: str) -> T | BadImage:
        try:
            return read(files[name])
        except BadImage as error:
            return error

    def read_some(some: list[str]) -> list[T | BadImage]:
        return [read_or_fault(name) for name in some]

    names = list(files)
    for start in range(0, len(names), _IN_FLIGHT):
        block = names[start : start + _IN_FLIGHT]
        tasks = [block[i : i + _PER_TASK] for i in range(0, len(block), _PER_TASK)]
        results = chain.from_iterable(pool.map(read_some, tasks))
        for done, (name, result) in enumerate(zip(block, results, strict=True), start + 1):
            if isinstance(result, BadImage):
                note_bad(name, result)
            else:
                yield name, result
            if progress is not None:
                progress(done, len(names))


def _usual_side(shorter_sides: Iterable[int]) -> int:
    sides = list(shorter_sides)
    median = statistics.median(sides) if sides else 0
    return max((side for side in USUAL_SIDES if side <= median), default=USUAL_SIDES[0])


def _targets(names: list[str]) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    folders = [_printable(name.rpartition("/")[0].partition("/")[0]) for name in names]
    if "" in folders or len(set(folders)) < 2:
        return None, ()
    return encode_targets(folders)


def _printable(name: str) -> str:
    """A file name that is not UTF-8 must not stop a run when its assignments are written."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
