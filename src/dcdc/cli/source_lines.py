"""`dcdc data info SOURCE`: what a source holds, in a few lines of at most 80 columns."""

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dcdc.cli.console import within_80
from dcdc.data.left_out import told
from dcdc.printable import counted

if TYPE_CHECKING:
    from dcdc.data.contents import SourceContents

_MOST_CLASSES, _MOST_NAMED = 6, 3
_LONGEST_NAME = 30


def source_lines(source: str, found: "SourceContents") -> list[str]:
    what = "feature vector" if found.shape is not None and len(found.shape) == 1 else "image"
    lines = [f"{source}: {counted(found.n_images, what)}"]
    if found.shape is not None:
        lines.append(f"shape      {' x '.join(map(str, found.shape))}")
    if found.headers:
        lines += _of_headers(found)
    lines += _classes(found.classes)
    lines += _duplicates(found)
    lines += _unreadable(found)
    if found.left_out:
        lines += within_80(f"left out   {told(found.left_out)}")
    n_clusters = len(found.classes) or min(10, found.n_images // 4)
    if n_clusters > 1:
        lines.append(f"try        dcdc fit {shlex.quote(source)} --clusters {n_clusters}")
    return lines


def _of_headers(found: "SourceContents") -> list[str]:
    headers = found.headers
    formats = Counter(header.format for header in headers).most_common()
    by_area = sorted((header.size for header in headers), key=lambda size: size[0] * size[1])
    smallest, median, largest = (
        f"{width:,} x {height:,}"
        for width, height in (by_area[0], by_area[len(by_area) // 2], by_area[-1])
    )
    sizes = f"{smallest} pixels, all of them"
    if by_area[0] != by_area[-1]:
        sizes = f"{smallest} to {largest} pixels, the median {median}"
    n_grey = sum(header.is_grey for header in headers)
    n_coloured = len(headers) - n_grey
    return [
        f"formats    {', '.join(f'{name} {n:,}' for name, n in formats)}",
        f"sizes      {sizes} (width x height)",
        f"colours    {n_coloured:,} in colour, {n_grey:,} grey",
    ]


def _classes(classes: Mapping[str, int]) -> list[str]:
    if not classes:
        return ["classes    none to score against"]
    largest = sorted(classes.items(), key=lambda each: -each[1])
    told = [f"{_short(name)} {n:,}" for name, n in largest[:_MOST_CLASSES]]
    if len(classes) > _MOST_CLASSES:
        told.append(f"and {counted(len(classes) - _MOST_CLASSES, 'other')}")
    return within_80(f"classes    {len(classes):,}: {', '.join(told)}")


def _duplicates(found: "SourceContents") -> list[str]:
    if not found.duplicates:
        return ["duplicates none: no two have the same content"]
    n = len(found.duplicates)
    lines = [f"duplicates {n:,} {'has' if n == 1 else 'have'} the content of another"]
    for name, first in found.duplicates[:_MOST_NAMED]:
        lines.append(f"           {_short(name)} is {_short(first)}")
    return lines + _more(n)


def _unreadable(found: "SourceContents") -> list[str]:
    if not found.unreadable:
        return []
    n = len(found.unreadable)
    lines = [f"unreadable {n:,}: repair or remove them, or use --on-bad skip"]
    for each in found.unreadable[:_MOST_NAMED]:
        lines += within_80(f"{'':11}{_short(each.name)}: {each.reason}")
    return lines + _more(n)


def _more(n: int) -> list[str]:
    return [f"           and {counted(n - _MOST_NAMED, 'other')}"] if n > _MOST_NAMED else []


def _short(name: str) -> str:
    """The end of a long one tells more."""
    return name if len(name) <= _LONGEST_NAME else f"...{name[3 - _LONGEST_NAME :]}"
