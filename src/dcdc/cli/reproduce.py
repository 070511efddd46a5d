"""`dcdc reproduce TABLE`: the paper's tables run here, ours beside the paper's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid

from dcdc.cli.arguments import DeviceName, Quiet, Report
from dcdc.cli.console import say
from dcdc.cli.experiments import (
    FirstSeed,
    Minutes,
    carry_out,
    check_options,
    deadline,
    leave,
    print_grid,
    read_images_for,
)
from dcdc.cli.words import REPRODUCE
from dcdc.errors import InputError, in_words
from dcdc.nearest_name import nearest
from dcdc.runtime.folder_lock import locked_folder

if TYPE_CHECKING:
    from dcdc.experiments.paper import Table
    from dcdc.experiments.recipe_runs import RecipeRun
    from dcdc.experiments.recipe_training import Training
    from dcdc.experiments.rows import RowResult


@in_words(REPRODUCE)
def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="One of main, losses, over-clustering, repeat, batch-size."
        ),
    ],
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
    first_seed: FirstSeed = 0,
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
    minutes: Minutes = None,
    report: Report = True,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of a table of the paper, and show ours beside the paper's."""
    check_options(seeds=seeds, first_seed=first_seed, minutes=minutes, out=out)
    is_over = deadline(minutes)

    from dcdc.experiments.paper import rows_of
    from dcdc.experiments.paper import table as find_table
    from dcdc.experiments.recipe_runs import Options, check_settings, plan, settings_text
    from dcdc.experiments.reproduce_tables import write_table
    from dcdc.experiments.rows import summarise

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
    runs, of_all = plan(rows, options), settings_text(whole, options)
    if list_only:
        _list(runs)
        return
    if show_only:
        _show(whole, summarise(runs, {}, REPRODUCE), of_all)
        return
    _require_means(runs)
    training = _training(is_over, device=device, report=report, quiet=quiet)
    with locked_folder(out, ("choose another {out}",)):
        ended = carry_out(runs, training.work, is_over, REPRODUCE, quiet=quiet)
        # The files hold every row.
        summary = summarise(plan(whole.rows, options), ended.faults, REPRODUCE)
        shown = [row for row in summary if row.row in rows]
        _show(whole, shown, of_all)
        for path in write_table(whole, summary, options):
            say(f"written: {path}")
    leave(ended, shown)


def _source(text: str, table: "Table") -> tuple[str, str]:
    """`NAME=SOURCE`, or a benchmark's own `NAME:FOLDER` and `NAME@SPLIT`."""
    name, equals, source = text.partition("=")
    if not equals:
        name, source = text.partition(":")[0].partition("@")[0], text
    if name not in table.datasets or not source:
        raise InputError(
            f"--data {text!r} does not say where a data set of table {table.name} lies"
            f"{nearest(name, table.datasets) or '.'} Write NAME=SOURCE, NAME one of "
            f"{', '.join(table.datasets)}"
        )
    return name, source


def _list(runs: Sequence["RecipeRun"]) -> None:
    for run in {run.folder: run for run in runs}.values():
        standing = run.standing()
        resume = standing.state == "begun"
        command = run.command(source=standing.source, resume=resume)
        say(f"{standing.state:9}{command}", whole=True)
        if standing.longer is not None:
            say(f"{'':9}as the first epochs of {standing.longer}")
        if standing.fault is not None:
            say(f"{'':9}{standing.fault.told(REPRODUCE)}")


def _require_means(runs: Sequence["RecipeRun"]) -> None:
    """Device and data, before the first run: what is not here must not show after hours."""
    from dcdc.data.sources import require_at_hand
    from dcdc.runtime.device import pick_device

    faults: dict[str, str] = {}
    for run in runs:
        standing = run.standing()
        if standing.state in ("begun", "missing"):
            pick_device(run.config.train.device)
            try:
                require_at_hand(run.config.data.source or standing.source or run.row.dataset)
            except InputError as error:
                faults.setdefault(run.row.dataset, error.told(REPRODUCE))
    if faults:
        here = dict.fromkeys(run.row.dataset for run in runs if run.row.dataset not in faults)
        others = " ".join(f"--dataset {name}" for name in here)
        hint = f"; or run what is here: {others}" if here else ""
        more = f" (nor is {', nor '.join(list(faults)[1:])})" if len(faults) > 1 else ""
        raise InputError(f"{next(iter(faults.values()))}{more}{hint}")


def _training(is_over: Callable[[], bool], *, device: str, report: bool, quiet: bool) -> "Training":
    from dcdc.cli.progress import watching
    from dcdc.experiments.recipe_training import Training
    from dcdc.report import write_report

    return Training(
        read=lambda data: read_images_for(device, data, quiet=quiet),
        watch=lambda: watching(quiet=quiet),
        is_over=is_over,
        after=write_report if report else lambda _folder, _images: None,
    )


def _show(table: "Table", rows: Sequence["RowResult[RecipeRun]"], settings: str) -> None:
    """The scores of a criterion stand in one cell, spreads below their means."""
    from dcdc.experiments.chosen_epoch import CRITERIA, METRICS
    from dcdc.experiments.reproduce_tables import figures

    grid, n_metrics = Grid(), len(METRICS)
    grid.add_column("", no_wrap=True)
    for head in ("", "seeds", "epochs"):
        grid.add_column(head)
    metrics = _aligned([metric.upper() for metric in METRICS])
    for group in (*CRITERIA.values(), "the paper"):
        grid.add_column(f"{group}\n{metrics}", no_wrap=True)
    grid.add_column("training", justify="right", no_wrap=True)
    for *words_and_scores, seconds in figures(rows).rows:
        words, scores = words_and_scores[:4], words_and_scores[4:]
        groups = [scores[at : at + n_metrics] for at in range(0, len(scores), n_metrics)]
        grid.add_row(*words, *map(_group, groups), seconds)
    title = f"{table.title} (the paper's table {table.number})"
    print_grid(grid, f"{title}, every run with {settings}" if settings else title, rows)


def _group(figures: Sequence[str]) -> str:
    split = [figure.partition(" ± ") for figure in figures]
    lines = [_aligned([mean for mean, _, _ in split])]
    if any(spread for _, _, spread in split):
        lines.append(_aligned([f"±{spread}" if spread else "" for _, _, spread in split]))
    return "\n".join(lines)


def _aligned(texts: Sequence[str]) -> str:
    return " ".join(f"{text:>5}" for text in texts)
