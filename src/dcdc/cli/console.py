"""What a person sees: results on stdout, everything else on stderr, no codes without a terminal."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dcdc.printable import shown

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
_WIDTH, _WIDTH_WITHOUT_TERMINAL = 80, 200


def note(text: str) -> None:
    err.print(shown(text), markup=False, soft_wrap=True)


def note_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Two columns, each broken where a narrow terminal has no room for it."""
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    for each in pairs:
        grid.add_row(*(Text(shown(text)) for text in each))
    err.print(grid)


def say(text: str) -> None:
    out.print(shown(text), markup=False, soft_wrap=True)


def say_fact(head: str, text: str) -> None:
    """`text` beside a word of at most ten letters, within 80 columns."""
    for line in within_80(f"{head:<11}{text}"):
        say(line)


def within_80(text: str) -> list[str]:
    """Words that do not fit into a line go below its second column."""
    wrapper = textwrap.TextWrapper(
        _WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.wrap(text)


def wide_out() -> Console:
    """For large tables: a pipe or a file breaks no line."""
    if out.is_terminal:
        return out
    return Console(width=max(out.width, _WIDTH_WITHOUT_TERMINAL), highlight=False)


def print_scores(rows: Mapping[str, Mapping[str, Any]], marked: str | None = None) -> None:
    """`marked`: whose weights the features are of, where they are not of these images alone."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for title in ("ACC", "NMI", "ARI"):
        table.add_column(title, justify="right")
    for name, scores in rows.items():
        table.add_row(name, *(f"{scores[key]:.3f}" for key in ("acc", "nmi", "ari")))
    out.print(table)
    if marked is not None:
        say(marked)
