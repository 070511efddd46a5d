"""`dcdc bench`: how fast a step is here, against the reference's way and against floors."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.bench import PARTS
from dcdc.cli.bench_scale import PRICE, show_scale
from dcdc.errors import InputError
from dcdc.nearest_name import nearest

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from dcdc.bench.ratios import Ratio
    from dcdc.bench.rows import Row
    from dcdc.bench.session import Session

_PRESETS = ("cifar10-paper", "digits")
_SECONDS, _CPU_SECONDS = 3.0, 1.0
_WIDEST_NAME = 60


def bench(
    preset: Annotated[
        list[str] | None,
        typer.Option(help=f"Recipe to measure; repeatable. Default {' and '.join(_PRESETS)}."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
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
    workers: Annotated[
        int | None,
        typer.Option(help="Processes of the reference's loader; default the cores, 16 at most."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Any other setting; repeatable."),
    ] = None,
    scale: Annotated[
        bool,
        typer.Option("--scale", help="Predict throughput and cost on 1 to 512 GPUs instead."),
    ] = False,
    price: Annotated[float, typer.Option(help="Dollars for an hour of one GPU.")] = PRICE,
) -> None:
    """Measure training steps here, and hold them against a reference and against floors."""
    parts = _parts(what)
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InputError(f"--seconds is {seconds}: give a number above 0")
    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}: give at least 1")
    if json_file is not None and json_file.is_dir():
        raise InputError(f"--json {json_file} is a folder: give a file")
    names = dict.fromkeys(preset or (_PRESETS[:1] if scale else _PRESETS))
    values = {"train.device": device, "train.batch_size": batch_size}
    given = {key: value for key, value in values.items() if value is not None}

    from dcdc.bench.case import build_case
    from dcdc.bench.reference_loader import default_workers
    from dcdc.bench.session import Session
    from dcdc.runtime.device import pick_device

    cases = [build_case(name, given, settings or []) for name in names]
    on = pick_device(cases[0].config.train.device)
    seconds = seconds or (_CPU_SECONDS if on.type == "cpu" else _SECONDS)
    if scale:
        for case in cases:
            show_scale(case, on, seconds, price)
        return
    session = Session(
        cases=cases,
        parts=parts,
        device=on,
        seconds=seconds,
        n_workers=workers or default_workers(),
    )
    _measure(session, json_file)


def _parts(what: str) -> list[str]:
    asked_for = [part.strip() for part in what.split(",")]
    for part in asked_for:
        if part not in PARTS:
            raise InputError(
                f"unknown --what {part!r}{nearest(part, PARTS)} Parts: {', '.join(PARTS)}"
            )
    return [part for part in PARTS if part in asked_for]


def _measure(session: "Session", json_file: Path | None) -> None:
    """After Ctrl-C what was measured so far is shown and written all the same."""
    from dcdc.bench.record import write_record
    from dcdc.bench.session import measure
    from dcdc.cli.console import note, say
    from dcdc.cli.faults import stop
    from dcdc.runtime.device import describe_device

    say(f"{describe_device(session.device)}, about {session.seconds:g} s each")
    rows: list[Row] = []
    complete = False
    with suppress(KeyboardInterrupt):
        for row in measure(session, lambda name: note(f"measuring {name}")):
            rows.append(row)  # noqa: PERF402 - those before an interruption stay
        complete = True
    _show(rows)
    if json_file is not None:
        write_record(json_file, session, rows, complete=complete)
    if not complete:
        stop("interrupted: what was measured before is all there is", 130)


def _show(rows: Sequence["Row"]) -> None:
    from dcdc.bench.ratios import ratios
    from dcdc.cli.console import wide_out

    wide = wide_out()
    if rows:
        wide.print(_row_table(rows), highlight=False)
    found = ratios(rows)
    if found:
        wide.print()
        wide.print(_ratio_table(found), highlight=False)


def _row_table(rows: Sequence["Row"]) -> "Table":
    titles = ["", "ms", "n", "spread", "images/s", "copies/s", "warm-up"]
    if any(row.measured and row.measured.peak_gpu_bytes for row in rows):
        titles.append("GPU memory")
    table = _table(titles)
    above = None
    for row in rows:
        if (row.preset or row.part) != above:
            above = row.preset or row.part
            table.add_row(above)
        table.add_row(*_cells(row)[: len(titles)])
    return table


def _cells(row: "Row") -> list["str | Text"]:
    from rich.filesize import decimal
    from rich.text import Text

    measured = row.measured
    if measured is None:
        return [Text(f"  {row.name}\n  not possible: {row.not_possible}")]
    remarks = list(measured.details.get("warnings", ()))
    if "teraflops_per_second" in measured.details:
        remarks.append(f"{measured.details['teraflops_per_second']:,.2f} TFLOP/s")
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


def _ratio_table(found: Sequence["Ratio"]) -> "Table":
    table = _table(["", "ratio", "from", "to", "n"])
    for ratio in found:
        title = f"{ratio.preset}: {ratio.name}" if ratio.preset else ratio.name
        numbers = (f"{value:.2f}" for value in (ratio.value, ratio.lowest, ratio.highest))
        table.add_row(title, *numbers, " / ".join(map(str, ratio.n_blocks)))
    return table


def _table(titles: Sequence[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(titles[0], max_width=_WIDEST_NAME)
    for title in titles[1:]:
        table.add_column(title, justify="right", no_wrap=True)
    return table
