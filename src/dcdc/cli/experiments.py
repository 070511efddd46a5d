"""What `dcdc compare` and `dcdc reproduce` share: options, runs in sequence, tables, exit."""

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text

from dcdc.cli.console import note, say, wide_out
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.errors import InputError, Words
from dcdc.printable import counted, shown

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.data import Data
    from dcdc.experiments.rows import RowResult
    from dcdc.experiments.sequence import Ended

FirstSeed = Annotated[int, typer.Option(help="The seeds count on from this one.")]
Minutes = Annotated[
    float | None,
    typer.Option(help="Begin nothing and stop what runs after so many, ready to go on."),
]
_TIME_OVER_EXIT = 3


def check_options(*, seeds: int, first_seed: int, minutes: float | None, out: Path | None) -> None:
    for name, value, least in (("seeds", seeds, 1), ("first-seed", first_seed, 0)):
        if value < least:
            raise InputError(f"--{name} is {value}: give at least {least}")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise InputError(f"--minutes is {minutes}: give a number above 0")
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file: give a folder")


def deadline(minutes: float | None) -> Callable[[], bool]:
    """Whether the minutes from now on are over."""
    if minutes is None:
        return lambda: False
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() >= end


def carry_out(
    runs: Iterable[Any],
    work: Callable[[Any, bool], None],
    is_over: Callable[[], bool],
    words: Words,
    *,
    quiet: bool,
) -> "Ended":
    from dcdc.experiments.sequence import carry_out

    say = (lambda _: None) if quiet else note
    return carry_out(runs, work, is_over=is_over, say=say, warn=note, words=words)


def read_images_for(
    device: str, data: "DataConfig", *, quiet: bool, largest_side: int | None = None
) -> "Data":
    """With the largest side that is read there, where none is given."""
    from dcdc.cli.reading import read_configured
    from dcdc.prepare.suggestions import largest_side_for

    side = largest_side or largest_side_for(device)
    return read_configured(data, largest_side=side, quiet=quiet)


def print_grid(grid: Grid, title: str, rows: "Sequence[RowResult[Any]]") -> None:
    """And below it what is neither done nor missing."""
    from dcdc.experiments.rows import all_results
    from dcdc.experiments.sheet import state_text

    grid.box, grid.pad_edge = None, False
    wide_out().print(Text(shown(title)))  # a grid's own title is broken at the grid's width
    wide_out().print(grid)
    unfinished = [
        f"{result.run.folder}: {state_text(result)}"
        for result in all_results(rows)
        if result.standing.state not in ("done", "missing") or result.fault
    ]
    for line in dict.fromkeys(unfinished):
        say(line)


def own_command() -> str:
    return shlex.join(["dcdc", *sys.argv[1:]])


def leave(ended: "Ended", rows: "Sequence[RowResult[Any]]") -> None:
    """Returns where all is done."""
    from dcdc.experiments.rows import all_results
    from dcdc.experiments.sequence import TIME_OVER

    states = {result.run.folder: result.standing.state for result in all_results(rows)}
    n_left = sum(state != "done" for state in states.values())
    again = f"go on with: {own_command()}"
    count = f"{n_left} of {counted(len(states), 'run is', 'runs are')} left"
    if ended.stopped in SIGNAL_EXIT:
        stop(
            f"stopped by {ended.stopped}, state saved; {count}; {again}", SIGNAL_EXIT[ended.stopped]
        )
    if ended.faults:
        first = next(iter(ended.faults.values()))
        others = f" (and {len(ended.faults) - 1} more)" if len(ended.faults) > 1 else ""
        stop(f"{count}, {len(ended.faults)} failed: {first}{others}; {again}", 1)
    if ended.stopped == TIME_OVER:
        stop(f"--minutes are over, state saved; {count}; {again}", _TIME_OVER_EXIT)
