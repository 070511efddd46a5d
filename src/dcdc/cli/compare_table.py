"""The comparison on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from dcdc.cli.console import say, wide_out

if TYPE_CHECKING:
    from dcdc.compare.rows import MethodRow


def print_rows(rows: Sequence["MethodRow"], title: str) -> None:
    from dcdc.compare.tables import cells, heads, is_best, state_text

    grid = Grid(box=None, pad_edge=False, title=Text(title), title_justify="left")
    for at, head in enumerate(heads(rows)):
        grid.add_column(head, justify="left" if at < 2 else "right", no_wrap=at != 1)
    for row in rows:
        marked = zip(cells(row, rows), is_best(row, rows), strict=True)
        grid.add_row(*(Text(text, style="bold" if best else "") for text, best in marked))
    wide_out().print(grid)
    for result in (result for row in rows for result in row.results):
        if result.fault or result.standing.state == "begun":
            say(f"{result.run.folder}: {state_text(result)}")
