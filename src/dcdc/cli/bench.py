"""`dcdc bench`: how fast the steps of a recipe and the perturbations are on this machine."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from dcdc.bench import PARTS
from dcdc.cli.arguments import DeviceName, Settings
from dcdc.cli.console import note, say, wide_out
from dcdc.cli.faults import stop
from dcdc.errors import InputError
from dcdc.nearest_name import unknown

if TYPE_CHECKING:
    from dcdc.bench.session import Session
    from dcdc.bench.timing import Row

PRESETS = ("cifar10-paper", "digits")
_WIDEST_NAME = 60


def bench(
    preset: Annotated[
        list[str] | None,
        typer.Option(help=f"Recipe to measure; repeatable. Default {' and '.join(PRESETS)}."),
    ] = None,
    device: DeviceName = "auto",
    what: Annotated[str, typer.Option(help="Parts to measure, with commas between.")] = ",".join(
        PARTS
    ),
    seconds: Annotated[
        float | None,
        typer.Option(help="Of each measurement, after its warm-up; default 3, on a CPU 1."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    settings: Settings = None,
) -> None:
    """Measure the training steps of every phase, and the perturbations alone."""
    parts = chosen_parts(what, PARTS)
    check_options(seconds, json_file)

    from dcdc.bench.session import Session
    from dcdc.bench.steps import build_case
    from dcdc.bench.timing import usual_seconds
    from dcdc.runtime.device import pick_device

    values = {"train.device": device, "batch_size": batch_size}
    names = dict.fromkeys(preset or PRESETS)
    cases = [build_case(name, values, settings or []) for name in names]
    on = pick_device(cases[0].config.train.device)
    carry_out(Session(cases, parts, on, seconds or usual_seconds(on)), json_file)


def chosen_parts(what: str, parts: Sequence[str]) -> list[str]:
    asked_for = [part.strip() for part in what.split(",")]
    for part in asked_for:
        if part not in parts:
            raise InputError(unknown("--what", part, parts))
    return [part for part in parts if part in asked_for]


def check_options(seconds: float | None, json_file: Path | None) -> None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InputError(f"--seconds is {seconds}: give a number above 0")
    if json_file is not None and json_file.is_dir():
        raise InputError(f"--json {json_file} is a folder: give a file")


def carry_out(
    session: "Session",
    json_file: Path | None,
    conclude: Callable[[Sequence["Row"]], dict[str, Any]] = lambda _rows: {},
) -> None:
    """After Ctrl-C what was measured so far is shown and written all the same.

    `conclude` may print more, and gives what else to write.
    """
    from dcdc.bench.session import measure, record
    from dcdc.runtime.atomic_files import write_text
    from dcdc.runtime.device import describe_device

    say(f"{describe_device(session.device)}, about {session.seconds:g} s each")
    rows: list[Row] = []
    complete = False
    with suppress(KeyboardInterrupt):
        for row in measure(session, lambda name: note(f"measuring {name}")):
            rows.append(row)  # noqa: PERF402 - those before an interruption stay
        complete = True
    if rows:
        wide_out().print(_row_table(rows), highlight=False)
    content = record(session, rows, complete=complete) | conclude(rows)
    if json_file is not None:
        write_text(json_file, json.dumps(content, indent=1) + "\n")
    if not complete:
        stop("interrupted: what was measured before is all there is", 130)


def _row_table(rows: Sequence["Row"]) -> Table:
    """A line for each row, under its preset or part."""
    titles = ["", "ms", "n", "spread", "images/s", "copies/s", "warm-up"]
    if any(row.measured and row.measured.peak_gpu_bytes for row in rows):
        titles.append("GPU memory")
    table = table_of(titles)
    above = None
    for row in rows:
        if (row.preset or row.part) != above:
            above = row.preset or row.part
            table.add_row(above)
        table.add_row(*_cells(row)[: len(titles)])
    return table


def table_of(titles: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(titles[0], max_width=_WIDEST_NAME)
    for title in titles[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _cells(row: "Row") -> list[str | Text]:
    measured = row.measured
    if measured is None:
        return [Text(f"  {row.name}\n  not possible: {row.not_possible}")]
    remarks = [line for key in ("warnings", "remarks") for line in measured.details.get(key, ())]
    timing, memory = measured.timing, measured.peak_gpu_bytes
    return [
        Text("\n".join(f"  {line}" for line in (row.name, *remarks))),
        f"{timing.ms:,.3f}",
        f"{timing.n_blocks} x {timing.calls_per_block}",
        f"{timing.spread:.2f}",
        *(
            f"{measured.per_second(n):,.0f}" if n else ""
            for n in (measured.images, measured.copies)
        ),
        f"{timing.warm_up_seconds:.1f} s",
        decimal(memory) if memory else "",
    ]
