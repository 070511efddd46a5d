"""What a person sees: results on stdout, everything else on stderr, no codes without a terminal."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dcdc.printable import shown

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
_WIDTH, _WIDTH_WITHOUT_TERMINAL = 80, 200


def note(text: str) -> None:
    _print(err, text)


def note_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Two columns, which a terminal has room for: each is broken between words."""
    if not err.is_terminal:
        for one, other in pairs:
            note(f"  {one:58} {other}")
        return
    table = Table.grid(padding=(0, 0, 0, 2), pad_edge=True)
    for pair in pairs:
        table.add_row(*(Text(shown(each)) for each in pair))
    err.print(table)


def say(text: str, *, whole: bool = False) -> None:
    """`whole`: never broken into lines, for a command that people copy."""
    _print(out, text, whole=whole)


def _print(console: Console, text: str, *, whole: bool = False) -> None:
    """A terminal would break lines within words; elsewhere a line stays one."""
    lines = [shown(text)]
    if console.is_terminal and not whole:
        wrapper = textwrap.TextWrapper(
            console.width, break_long_words=False, break_on_hyphens=False
        )
        lines = wrapper.wrap(lines[0]) or lines
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


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
