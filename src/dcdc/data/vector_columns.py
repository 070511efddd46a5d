"""What the columns of a `.csv` or `.tsv` are by its first lines: features, labels, paths, names."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from dcdc.data.listing import refuse_same_names
from dcdc.data.path_list import DELIMITERS, LABEL_COLUMNS, PATH_COLUMNS, first_of, label_column
from dcdc.stored.reading import require_regular

NAME_COLUMNS = ("name", "names", "id")
_LINES_LOOKED_AT = 32
_FEWEST_NUMBERED = 3


@dataclass(frozen=True)
class Columns:
    """By their places."""

    names: tuple[str, ...]
    n_header_lines: int
    delimiter: str
    features: tuple[int, ...]
    others: tuple[int, ...]
    """Neither numbers nor of any known name."""
    label: int | None = None
    path: int | None = None
    name: int | None = None
    n_line_bytes: int = 0
    """Of the longest line that was looked at, about."""

    @property
    def are_vectors(self) -> bool:
        """A list of images may have numbers too, such as their widths: beside a column of paths,
        features are a family with numbers, f0, f1, f2, ..."""
        if self.path is not None:
            return not self.others and _are_numbered([self.names[at] for at in self.features])
        return len(self.features) >= 2 and len(self.features) > len(self.others)


def read_columns(file: Path, target: str | None) -> Columns | None:
    """None for what is no table; `target` as for a list of images."""
    delimiter = DELIMITERS[file.suffix.lower()]
    try:
        with require_regular(file).open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
            filled = (cells for cells in reader if cells)
            first = [cell.strip() for cell in next(filled, [])]
            n_header_lines = reader.line_num if _is_header(first) else 0
            rows = [cells for cells in islice(filled, _LINES_LOOKED_AT) if len(cells) == len(first)]
    except (csv.Error, UnicodeDecodeError):
        return None
    if not first:
        return None
    if n_header_lines:
        refuse_same_names(first, file)
    names = tuple(first) if n_header_lines else tuple(str(at + 1) for at in range(len(first)))
    rows = rows if n_header_lines else [first, *rows]
    numeric = [
        at for at in range(len(names)) if 2 * sum(_is_number(row[at]) for row in rows) >= len(rows)
    ]
    longest = max(sum(map(len, row)) + len(row) for row in (first, *rows))
    if n_header_lines:
        found = _by_name(names, n_header_lines, delimiter, numeric, target, file)
    else:
        others = tuple(sorted(set(range(len(names))) - set(numeric)))
        found = Columns(names, 0, delimiter, tuple(numeric), others)
    return replace(found, n_line_bytes=longest)


def _by_name(
    names: tuple[str, ...],
    n_header_lines: int,
    delimiter: str,
    numeric: Sequence[int],
    target: str | None,
    file: Path,
) -> Columns:
    kinds = (LABEL_COLUMNS, PATH_COLUMNS, NAME_COLUMNS)
    usual, path, name = (first_of(kind, names) for kind in kinds)
    label = label_column(names, target, file)
    # pandas writes its index in a first column without a name
    aside = {usual, label, path, name, *(at for at in (0,) if not names[at])}
    features = tuple(at for at in numeric if at not in aside)
    others = tuple(sorted(set(range(len(names))) - aside - set(features)))
    return Columns(names, n_header_lines, delimiter, features, others, label, path, name)


def _is_header(cells: Sequence[str]) -> bool:
    """No number in it, or a known name, or 0, 1, 2, ... as pandas counts columns."""
    known = {*LABEL_COLUMNS, *PATH_COLUMNS, *NAME_COLUMNS}
    if any(cell.lower() in known for cell in cells):
        return True
    filled = [cell for cell in cells if cell]
    counted = [str(at) for at in range(len(filled))]
    return filled == counted or not any(map(_is_number, filled))


def _is_number(cell: str) -> bool:
    """What is missing may be one."""
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _are_numbered(names: Sequence[str]) -> bool:
    parts = [re.fullmatch(r"(.*?)(\d+)", name) for name in names]
    stems = {part[1] if part else None for part in parts}
    return len(names) >= _FEWEST_NUMBERED and len(stems) == 1 and None not in stems
