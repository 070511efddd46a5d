"""A list of image files, perhaps with their classes: a table with a header, or a path per line.

Paths are relative to the list's folder, or absolute. A list in memory has no folder: its paths are
relative to where the process works.
"""

import csv
import difflib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.data.fingerprint import files_fingerprint, stat_of
from dcdc.data.folder import IMAGE_EXTENSIONS
from dcdc.data.listing import BadImage, Encoded, Listing, refuse_same_names
from dcdc.errors import InputError
from dcdc.labels import encode_targets
from dcdc.printable import utf8_name
from dcdc.stored.reading import require_regular

PATH_COLUMNS = ("path", "file", "filename", "file_name", "image", "img")
LABEL_COLUMNS = ("label", "labels", "class", "target")
NO_TARGET = ("", "none")
DELIMITERS = {".csv": ",", ".tsv": "\t"}


class _Row(NamedTuple):
    line: int
    path: str
    label: str | None


def list_paths(file: Path, target: str | None = None) -> Listing:
    """The images in the order of a `.csv`, `.tsv` or text file, named as they are written there.

    `target` names a table's label column; without it one of LABEL_COLUMNS is taken.
    """
    delimiter = DELIMITERS.get(file.suffix.lower())
    try:
        with require_regular(file).open(encoding="utf-8-sig", newline="") as lines:
            found = (
                _plain_rows(lines, file, target)
                if delimiter is None
                else _table_rows(lines, delimiter, file, target)
            )
            rows = list(found)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text: save it as UTF-8") from None
    if not rows:
        raise InputError(f"{file} lists no image: give a path in each line")
    folder = file.resolve().parent
    _refuse_twins(rows, folder, file)
    targets, class_names = _classes(rows, file)
    names = tuple(row.path for row in rows)

    def encoded(start: int) -> Iterator[Encoded]:
        for row in range(start, len(names)):
            yield _image_at(folder / names[row])

    fingerprint = files_fingerprint(folder, ((name, stat_of(folder / name)) for name in names))
    return Listing(
        where=str(file),
        names=names,
        encoded=encoded,
        fingerprint=fingerprint,
        targets=targets,
        class_names=class_names,
        file_of=lambda row: folder / names[row],
    )


def list_files(files: Sequence[Path], where: str = "the list of paths") -> Listing:
    """Image files in the order given, each named by its path; one may come more than once."""
    names = tuple(utf8_name(str(file)) for file in files)

    def encoded(start: int) -> Iterator[Encoded]:
        for file in files[start:]:
            yield _image_at(file)

    here = Path.cwd()
    fingerprint = files_fingerprint(here, ((str(file), stat_of(file)) for file in files))
    return Listing(
        where, names, encoded, fingerprint, file_of=lambda row: Path(files[row]).absolute()
    )


def unknown_column(
    name: str, columns: Sequence[str], where: Path, what: str = "column"
) -> InputError:
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f"did you mean {near[0]!r}? It" if near else "it"
    return InputError(f"{where} has no {what} {name!r}: {hint} has {', '.join(columns)}")


def _plain_rows(lines: Iterable[str], file: Path, target: str | None) -> Iterator[_Row]:
    if target is not None and target not in NO_TARGET:
        raise InputError(
            f"{file} has no header, so no column {target!r}: put the label after a TAB, or give a "
            ".csv or .tsv"
        )
    for number, line in enumerate(lines, 1):
        path, tab, label = line.rstrip("\r\n").partition("\t")
        if path.strip() and not path.startswith("#"):
            wanted = bool(tab) and target is None
            yield _Row(number, path.strip(), label.strip() if wanted else None)


def _table_rows(
    lines: Iterable[str], delimiter: str, file: Path, target: str | None
) -> Iterator[_Row]:
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        filled = (cells for cells in reader if cells)
        columns = [name.strip() for name in next(filled, [])]
        refuse_same_names(columns, file)
        path_at = _path_column(columns, file)
        label_at = label_column(columns, target, file)
        for cells in filled:
            if len(cells) != len(columns):
                raise InputError(
                    f"{file}, line {reader.line_num}: {len(cells)} fields under {len(columns)} "
                    "columns: quote a field that holds the separator"
                )
            path = cells[path_at].strip()
            if not path:
                raise InputError(f"{file}, line {reader.line_num}: no path: fill or remove it")
            label = None if label_at is None else cells[label_at].strip()
            yield _Row(reader.line_num, path, label)
    except csv.Error as error:
        raise InputError(f"{file}, line {reader.line_num}: {error}: check the quotes") from None


def _path_column(columns: Sequence[str], file: Path) -> int:
    if not columns:
        raise InputError(f"{file} lists no image: give a header, and a path in each line")
    known = first_of(PATH_COLUMNS, columns)
    if known is not None:
        return known
    looks_like_a_path = columns[0].rpartition(".")[2].lower() in IMAGE_EXTENSIONS
    if len(columns) > 1 or looks_like_a_path or ";" in columns[0]:
        raise InputError(
            f"{file} has the columns {', '.join(columns)}: name that of the paths "
            f"{', '.join(PATH_COLUMNS[:-1])} or {PATH_COLUMNS[-1]} in the first line"
        )
    return 0


def label_column(columns: Sequence[str], target: str | None, file: Path) -> int | None:
    if target is None:
        return first_of(LABEL_COLUMNS, columns)
    if target in NO_TARGET:
        return None
    if target not in columns:
        raise unknown_column(target, columns, file)
    return columns.index(target)


def first_of(known: Sequence[str], columns: Sequence[str]) -> int | None:
    lowered = [name.lower() for name in columns]
    return next((lowered.index(name) for name in known if name in lowered), None)


def _refuse_twins(rows: Sequence[_Row], folder: Path, file: Path) -> None:
    lines: dict[str, int] = {}
    for row in rows:
        path = os.path.normpath(folder / row.path)
        if path in lines:
            raise InputError(
                f"{file} lists {row.path!r} twice, in lines {lines[path]} and {row.line}: drop one"
            )
        lines[path] = row.line


def _classes(rows: Sequence[_Row], file: Path) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    if all(row.label is None for row in rows):
        return None, ()
    for row in rows:
        if not row.label:
            raise InputError(
                f"{file}, line {row.line}: no label",
                remedy=("label every image", "use {target=none}"),
            )
    return encode_texts([str(row.label) for row in rows], file)


def encode_texts(texts: Sequence[str], file: Path) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes of labels as they are written in a file, and the classes that they stand for."""
    labels = list(set(texts))
    numbers = _as_numbers(labels)
    codes, class_names = encode_targets(
        labels if numbers is None else numbers, f"the labels of {file}"
    )
    code_of = dict(zip(labels, codes.tolist(), strict=True))
    targets = np.fromiter((code_of[text] for text in texts), np.int64, len(texts))
    return targets, class_names


def _as_numbers(labels: Sequence[str]) -> NDArray[np.int64] | None:
    """So that 10 comes after 9; None if some label is no number, or not written as one."""
    try:
        numbers = np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if list(map(str, numbers.tolist())) == list(labels) else None


def _image_at(path: Path) -> Encoded:
    found = stat_of(path)
    if found is None:
        return BadImage("no such file")
    return path if stat.S_ISREG(found.st_mode) else BadImage("not a regular file")
