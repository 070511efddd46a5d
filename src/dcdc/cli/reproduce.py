"""`dcdc reproduce TABLE`: the paper's tables run here, ours beside the paper's."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.arguments import DeviceName, Quiet, Report
from dcdc.cli.session import check_session, leave
from dcdc.config import RunConfig
from dcdc.errors import InputError
from dcdc.nearest_name import nearest
from dcdc.reproduce.tables import TABLES, rows_of
from dcdc.reproduce.tables import table as find_table

if TYPE_CHECKING:
    from dcdc.data import ImageSet
    from dcdc.reproduce.runs import Options, Run
    from dcdc.reproduce.sequence import Ended
    from dcdc.reproduce.summary import RowResult
    from dcdc.reproduce.tables import Row, Table
    from dcdc.run_folder import RunFolder


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"One of {', '.join(TABLES)}.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this data set's rows; repeatable."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE",
            help="Where a data set lies, as dcdc fit takes it; repeatable. Default its own name.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each row.")] = 1,
    first_seed: Annotated[int, typer.Option(help="The seeds count on from this one.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(help="Shorter runs, in folders of their own, marked as such.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where runs and tables go.")] = Path(
        "runs/reproduce"
    ),
    list_only: Annotated[
        bool, typer.Option("--list", help="Show each run's state and command; train nothing.")
    ] = False,
    show_only: Annotated[
        bool, typer.Option("--show", help="Show the table as far as it is done; train nothing.")
    ] = False,
    device: DeviceName = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="A setting of every run; repeatable."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Begin nothing and stop what trains after so many, ready to go on."),
    ] = None,
    report: Report = True,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of a table of the paper, and show ours beside the paper's."""
    started = time.monotonic()
    check_session(seeds=seeds, first_seed=first_seed, minutes=minutes, out=out)

    from dcdc.cli.console import say
    from dcdc.reproduce.outcome import read_outcome
    from dcdc.reproduce.record import write_table
    from dcdc.reproduce.runs import Options, check_settings, plan

    whole = find_table(table)
    rows = rows_of(whole, dataset or ())
    check_settings(whole, settings or ())
    options = Options(
        out=out,
        seeds=tuple(range(first_seed, first_seed + seeds)),
        epochs=epochs,
        device=device,
        settings=tuple(settings or ()),
        sources=dict(_source(text, whole) for text in data or ()),
    )
    runs = [run for row in rows for run in plan(row, options)]
    if list_only:
        _list(runs)
        return
    if show_only:
        _show(whole, rows, options, {})
        return
    deadline = None if minutes is None else started + 60 * minutes
    _require_means(runs)
    ended = _carry_out(runs, deadline, report, quiet)
    for path in write_table(whole, _show(whole, rows, options, ended.faults), options):
        say(f"written: {path}")
    folders = {run.folder: run for run in runs}
    left = sum(read_outcome(run).state != "done" for run in folders.values())
    leave(ended, left, len(folders))


def _source(text: str, table: "Table") -> tuple[str, str]:
    """`NAME=SOURCE`, or a benchmark's own `NAME:FOLDER` and `NAME@SPLIT`."""
    name, equals, source = text.partition("=")
    if not equals:
        name, source = text.partition(":")[0].partition("@")[0], text
    if name not in table.datasets or not source:
        raise InputError(
            f"--data {text!r} does not say where a data set of table {table.name} lies"
            f"{nearest(name, table.datasets)} Write NAME=SOURCE, NAME one of "
            f"{', '.join(table.datasets)}"
        )
    return name, source


def _list(runs: Sequence["Run"]) -> None:
    from dcdc.cli.console import say
    from dcdc.reproduce.outcome import read_outcome
    from dcdc.reproduce.runs import command

    for run in {run.folder: run for run in runs}.values():
        outcome = read_outcome(run)
        resume = outcome.state == "begun"
        say(f"{outcome.state:9}{command(run, source=outcome.source, resume=resume)}")
        if outcome.longer is not None:
            say(f"{'':9}as the first epochs of {outcome.longer}")
        if outcome.fault:
            say(f"{'':9}{outcome.fault}")


def _require_means(runs: Sequence["Run"]) -> None:
    """Device and data, before the first run: what is not here must not show after hours."""
    from dcdc.data.sources import require_at_hand
    from dcdc.reproduce.outcome import read_outcome
    from dcdc.runtime.device import pick_device

    faults: dict[str, str] = {}
    for run in runs:
        outcome = read_outcome(run)
        if outcome.state in ("begun", "missing"):
            pick_device(run.config.train.device)
            try:
                require_at_hand(run.config.data.source or outcome.source or run.dataset)
            except InputError as error:
                faults.setdefault(run.dataset, str(error))
    if faults:
        here = dict.fromkeys(run.dataset for run in runs if run.dataset not in faults)
        others = " ".join(f"--dataset {name}" for name in here)
        hint = f"; or run what is here: {others}" if here else ""
        more = f" (nor is {', nor '.join(list(faults)[1:])})" if len(faults) > 1 else ""
        raise InputError(f"{next(iter(faults.values()))}{more}{hint}")


def _carry_out(runs: Sequence["Run"], deadline: float | None, report: bool, quiet: bool) -> "Ended":
    from dcdc.cli.console import note
    from dcdc.cli.progress import watching
    from dcdc.cli.reading import read_configured
    from dcdc.config_for_images import largest_side_for
    from dcdc.report import write_report
    from dcdc.reproduce.session import Session

    def read(config: RunConfig) -> "ImageSet":
        side = largest_side_for(config.train.device)
        return read_configured(config.data, largest_side=side, quiet=quiet)

    def after(folder: "RunFolder", images: "ImageSet") -> None:
        if report:
            write_report(folder, images)

    session = Session(
        read=read,
        watch=lambda: watching(quiet=quiet),
        say=(lambda _: None) if quiet else note,
        warn=note,
        after=after,
        deadline=deadline,
    )
    return session.carry_out(runs)


def _show(
    table: "Table", rows: Sequence["Row"], options: "Options", faults: Mapping[Path, str]
) -> list["RowResult"]:
    """The rows asked for are shown; the whole table is returned."""
    from dcdc.cli.reproduce_table import print_table
    from dcdc.reproduce.runs import settings_text
    from dcdc.reproduce.summary import summarise

    summary = summarise(table.rows, options, faults)
    shown = [result for result in summary if result.row in rows]
    print_table(table, shown, settings_text(table, options))
    return summary
