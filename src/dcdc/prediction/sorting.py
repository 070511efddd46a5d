"""Image files into one folder per cluster: copied or linked, never overwritten, none lost."""

import filecmp
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError
from dcdc.printable import counted
from dcdc.runtime.atomic_files import copy_new, place

OUTLIERS = "outliers"
"""The folder of images that belong to no cluster."""
_LONGEST = 180  # bytes of a name, so that a number and an extension fit in 255
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Sorting:
    """Where files go, and how."""

    folder: Path
    by_link: bool = False


class Files(Protocol):
    """A source with a name for each row and, where images are files, the file."""

    @property
    def where(self) -> str: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def file_of(self) -> Callable[[int], Path] | None: ...


@dataclass(frozen=True)
class NamedFiles:
    where: str
    names: Sequence[str]
    file_of: Callable[[int], Path] | None = None


@dataclass(frozen=True)
class Sorted:
    n_placed: int
    n_there: int
    """Left by an earlier start."""


def sorted_line(done: Sorted, sorting: Sorting) -> str:
    """What to say of it."""
    how = "linked" if sorting.by_link else "copied"
    there = f", {done.n_there:,} there already" if done.n_there else ""
    return f"{counted(done.n_placed, 'file')} {how}{there}: {sorting.folder}"


def cluster_folders(n_clusters: int, names: Mapping[int, str]) -> list[str]:
    """A name for each cluster's folder that every system takes, and at the end for that of
    outliers; no two differ in case alone."""
    width = max(2, len(str(n_clusters - 1)))
    numbers = [f"{cluster:0{width}d}" for cluster in range(n_clusters)]
    wanted = [
        _safe(names.get(cluster, "")) or f"cluster-{number}"
        for cluster, number in enumerate(numbers)
    ]
    numbers, wanted = [*numbers, "none"], [*wanted, OUTLIERS]
    shared = Counter(name.casefold() for name in wanted)
    found = [
        name if shared[name.casefold()] == 1 else f"{name}-{number}"
        for name, number in zip(wanted, numbers, strict=True)
    ]
    if len({name.casefold() for name in found}) < len(found):
        found = [f"{name}-{number}" for name, number in zip(wanted, numbers, strict=True)]
    return found


def flat_name(name: str) -> str:
    """A path in one name: `cats/tabby/1.png` -> `cats_tabby_1.png`, its end where it is long."""
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
    flat = Path(_NOT_IN_NAMES.sub("_", "_".join(parts)).lstrip(". ") or "image")
    end = flat.stem.encode("utf-8", "surrogateescape")[-_LONGEST:]
    return end.decode("utf-8", "ignore") + flat.suffix


def check_sorting(sorting: Sorting, files: Files, folders: list[str]) -> None:
    """Refuses before minutes go into predicting."""
    if files.file_of is None:
        raise InputError(
            f"{files.where} holds no image files to sort",
            remedy="{copy_to} and {link_to} are for a folder of images, a list of paths, or "
            "feature vectors with a column of their files",
        )
    source = Path(files.where)
    if not source.is_dir():
        return
    for name in folders:
        if (sorting.folder / name).resolve().is_relative_to(source.resolve()):
            raise InputError(
                f"{sorting.folder / name} lies in {source}, where its files would be read as new "
                "images: choose a folder outside it"
            )


def sort_files(
    files: Files,
    clusters: NDArray[np.int32],
    folders: list[str],
    sorting: Sorting,
    *,
    key: str,
    progress: Callable[[int, int], None],
) -> Sorted:
    """Every file with a cluster, in the order of the rows; a second call finds what is there.

    Copies appear whole: they are made under a hidden name that `key` keeps apart from others'.
    """
    assert files.file_of is not None
    spare = sorting.folder / f".dcdc-{key}.partial"
    shelves: dict[int, _Shelf] = {}
    n_placed = 0
    try:
        for row, cluster in enumerate(clusters.tolist()):
            if cluster >= 0:
                if cluster not in shelves:
                    place_of = sorting.folder / folders[cluster]
                    shelves[cluster] = _Shelf(place_of, spare, by_link=sorting.by_link)
                n_placed += _put(shelves[cluster], files.file_of(row), files.names[row])
            progress(row + 1, len(clusters))
    finally:
        spare.unlink(missing_ok=True)
    return Sorted(n_placed, int((clusters >= 0).sum()) - n_placed)


def _put(shelf: "_Shelf", file: Path, name: str) -> bool:
    if not file.exists():
        raise InputError(
            f"the image of {name} is not at {file}: place it there, and the same command goes on"
        )
    flat = flat_name(name)
    # Feature vectors may have names of their own.
    return shelf.put(file, flat if flat.endswith(file.suffix) else flat + file.suffix)


class _Shelf:
    """A cluster's folder. Names that differ in case alone are one name on some disks."""

    def __init__(self, folder: Path, spare: Path, *, by_link: bool) -> None:
        self._folder, self._spare, self._by_link = folder, spare, by_link
        self._taken: set[str] = set()
        self._last_number: dict[str, int] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, file: Path, wanted: str) -> bool:
        """Whether it was put there now; otherwise it was there. As name.png, name-2.png, ..."""
        key = wanted.casefold()
        stem, suffix = Path(wanted).stem, Path(wanted).suffix
        for number in count(self._last_number.get(key, 0) + 1):
            name = wanted if number == 1 else f"{stem}-{number}{suffix}"
            if name.casefold() in self._taken:
                continue  # by another row, perhaps of the same pixels
            placed = self._put_as(file, self._folder / name)
            if placed is not None:
                self._taken.add(name.casefold())
                self._last_number[key] = number
                return placed
        raise AssertionError("numbers do not end")

    def _put_as(self, file: Path, target: Path) -> bool | None:
        """Whether it was put there now; False: it was there; None: something else is."""
        if os.path.lexists(target):
            return False if self._is_there(file, target) else None
        try:
            if self._by_link:
                target.symlink_to(file)
            else:
                copy_new(file, self._spare)
                place(self._spare, target)
        except FileExistsError:  # somebody was quicker
            return None
        return True

    def _is_there(self, file: Path, target: Path) -> bool:
        if self._by_link or target.is_symlink():
            return self._by_link and target.is_symlink() and target.readlink() == file
        return target.is_file() and filecmp.cmp(file, target, shallow=False)


def _safe(name: str) -> str:
    """A name as a folder's, or nothing where it has no letter left to go by."""
    shown = "".join(
        "_" if unicodedata.category(character)[0] == "C" else character for character in name
    )
    clean = _NOT_IN_NAMES.sub("_", shown).encode()[:_LONGEST].decode("utf-8", "ignore")
    clean = clean.strip(". ")
    if not clean.strip("_") or _RESERVED.fullmatch(clean):
        return ""
    return clean
