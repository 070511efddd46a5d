"""What is known of rows of features beside the features: names, classes, and files of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.data.image_set import Skipped, classes_of_rows, numbered_names
from dcdc.errors import InputError
from dcdc.labels import encode_targets
from dcdc.printable import utf8_name
from dcdc.runtime.journal import Skips


class FilePaths(Sequence[Path]):
    """Paths as they are written, below a folder; made when asked for, so that a million are few."""

    def __init__(self, written: Sequence[str], folder: Path = Path()) -> None:
        self.written, self._folder = written, folder

    def __len__(self) -> int:
        return len(self.written)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Path, ...]: ...
    def __getitem__(self, index: int | slice) -> Path | tuple[Path, ...]:
        if isinstance(index, slice):
            return tuple(self._folder / path for path in self.written[index])
        return self._folder / self.written[index]

    def taken(self, rows: Sequence[int]) -> "FilePaths":
        return FilePaths(tuple(self.written[row] for row in rows), self._folder)


@dataclass(frozen=True, eq=False)
class RowFacts:
    """Of every row, those included that are left out later."""

    names: Sequence[str]
    targets: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    files: FilePaths | None = None

    def __len__(self) -> int:
        return len(self.names)

    def without(self, skipped: Skips) -> tuple["RowFacts", tuple[Skipped, ...]]:
        if not skipped:
            return self, ()
        kept = np.delete(np.arange(len(self)), [row for row, _ in skipped])
        rows: list[int] = kept.tolist()
        targets, class_names = classes_of_rows(self.targets, self.class_names, kept)
        names = tuple(self.names[row] for row in rows)
        files = None if self.files is None else self.files.taken(rows)
        left_out = tuple(Skipped(self.names[row], why) for row, why in skipped)
        return RowFacts(names, targets, class_names, files), left_out


def facts_of(
    n_rows: int,
    targets: ArrayLike | None,
    names: Sequence[str] | NDArray[Any] | None,
    files: Sequence[str | Path] | NDArray[Any] | None,
    where: str,
    folder: Path = Path(),
) -> RowFacts:
    """Checked against the number of rows; `files` are relative to `folder`.

    Rows without `names` are called by their files where each has its own, otherwise by numbers.
    """
    codes: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    if targets is not None:
        codes, class_names = encode_targets(targets, f"the targets of {where}")
        _require_one_each(n_rows, len(codes), "targets", where)
    paths = None
    if files is not None:
        paths = FilePaths(_texts(files, n_rows, "files", where), folder)
    if names is not None:
        names = tuple(map(utf8_name, _texts(names, n_rows, "names", where)))
    return RowFacts(_names(n_rows, names, paths), codes, class_names, paths)


def _names(n_rows: int, names: Sequence[str] | None, paths: FilePaths | None) -> Sequence[str]:
    if names is not None:
        return names
    if paths is not None and len(set(paths.written)) == n_rows:
        return tuple(map(utf8_name, paths.written))
    return numbered_names("image", n_rows)


def _texts(
    values: Sequence[Any] | NDArray[Any], n_rows: int, what: str, where: str
) -> Sequence[str]:
    if np.ndim(values) != 1 if isinstance(values, np.ndarray) else isinstance(values, str):
        raise InputError(f"the {what} of {where} are no flat list: give one for each row")
    _require_one_each(n_rows, len(values), what, where)
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return tuple(
        each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else str(each)
        for each in listed
    )


def _require_one_each(n_rows: int, n_found: int, what: str, where: str) -> None:
    if n_found != n_rows:
        raise InputError(f"{where} has {n_rows} rows but {n_found} {what}: give one for each")
