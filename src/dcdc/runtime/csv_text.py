"""CSV that a spreadsheet shows and does not run, and the way back to what was meant.

A text that begins with =, +, -, @, a tab or a carriage return is a formula to a spreadsheet: it
gets an apostrophe before it, as does one that would read as such a text. Numbers stay numbers.
"""

import re
from collections.abc import Iterable
from typing import Any

_TO_QUOTE = re.compile(r'[",\r\n]')
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows)


def unguarded(cell: str) -> str:
    """The text that a cell of ours stands for."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _cell(value: Any) -> str:
    """Python's own writer leaves a lone carriage return bare, and readers then split the row."""
    text = "" if value is None else str(value)
    if isinstance(value, str) and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    if not _TO_QUOTE.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
