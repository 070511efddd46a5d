"""A table of the paper on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from dcdc.cli.console import out, wide_out

if TYPE_CHECKING:
    from dcdc.reproduce.summary import RowResult
    from dcdc.reproduce.tables import Table

_CELL = 5


def print_table(table: "Table", rows: Sequence["RowResult"], settings: str) -> None:
    from dcdc.reproduce.chosen_epoch import CRITERIA, METRICS
    from dcdc.reproduce.markdown import state_text
    from dcdc.reproduce.paper import TITLES
    from dcdc.reproduce.summary import cells

    title = f"{table.title} (the paper's table {table.number})"
    grid = Grid(
        box=None,
        pad_edge=False,
        title=Text(f"{title}, every run with {settings}" if settings else title),
        title_justify="left",
    )
    grid.add_column("", no_wrap=True)
    for head in ("", "seeds", "epochs"):
        grid.add_column(head)
    metrics = _aligned([metric.upper() for metric in METRICS])
    for group in (*CRITERIA.values(), "the paper"):
        grid.add_column(f"{group}\n{metrics}", no_wrap=True)
    grid.add_column("training", justify="right", no_wrap=True)
    for row in rows:
        seconds = "-" if row.seconds is None else f"{row.seconds:,.0f} s"
        told = (TITLES[row.row.dataset], row.row.title, row.seeds, row.epochs)
        figures = cells(row)
        groups = [figures[at : at + len(METRICS)] for at in range(0, len(figures), len(METRICS))]
        grid.add_row(*told, *map(_group, groups), seconds)
    wide_out().print(grid)
    unfinished = [
        f"{result.run.folder}: {state_text(result)}"
        for row in rows
        for result in row.results
        if result.outcome.state not in ("done", "missing") or result.fault
    ]
    for line in dict.fromkeys(unfinished):
        out.print(line, markup=False, soft_wrap=True)


def _group(figures: Sequence[str]) -> str:
    """NMI, ACC and ARI in one cell; spreads stand below their means."""
    split = [figure.partition(" ± ") for figure in figures]
    lines = [_aligned([mean for mean, _, _ in split])]
    if any(spread for _, _, spread in split):
        lines.append(_aligned([f"±{spread}" if spread else "" for _, _, spread in split]))
    return "\n".join(lines)


def _aligned(texts: Sequence[str]) -> str:
    return " ".join(f"{text:>{_CELL}}" for text in texts)
