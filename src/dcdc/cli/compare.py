"""`dcdc compare DATA`: methods on one set of images or feature vectors, side by side."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text

from dcdc.cli.arguments import (
    Clusters,
    Column,
    Data,
    DeviceName,
    OnBad,
    Quiet,
    Target,
    name_of_source,
    number_of_clusters,
)
from dcdc.cli.compared_features import (
    features_to_compare,
    fitting_methods,
    folder_suffix,
    read_compared,
)
from dcdc.cli.console import note, say
from dcdc.cli.experiments import (
    FirstSeed,
    Minutes,
    carry_out,
    check_options,
    deadline,
    leave,
    own_command,
    print_grid,
)
from dcdc.cli.words import COMPARE
from dcdc.config import RunConfig
from dcdc.errors import InputError, in_words
from dcdc.nearest_name import unknown
from dcdc.printable import counted
from dcdc.runtime.folder_lock import locked_folder, refuse_if_locked

if TYPE_CHECKING:
    from dcdc.data import Data as Images
    from dcdc.experiments.method_runs import Features, MethodRun, Task
    from dcdc.experiments.rows import RowResult
    from dcdc.report.disagreement import ShownImages

_ALL = "all"
_ELSEWHERE = ("choose another {out}",)


@in_words(COMPARE)
def compare(
    data: Data,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="all that take such data, or some joined by commas: k-means,sc,dcdc.",
        ),
    ] = _ALL,
    seeds: Annotated[int, typer.Option(help="Runs of each method.")] = 1,
    first_seed: FirstSeed = 0,
    clusters: Clusters = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="Compare on the features of this pretrained network, not on pixels: "
            "efficientnet-lite0, timm:NAME, hf:NAME, torchvision:NAME, file:PATH."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(help="Side in pixels to bring images to.")] = None,
    target: Target = None,
    column: Column = None,
    on_bad: OnBad = "refuse",
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which benchmark DATA is, for its published figures and its recipe; default by "
            "the name of DATA.",
        ),
    ] = None,
    device: DeviceName = "auto",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where runs, tables and page go; default by DATA."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METHOD.KEY=VALUE",
            help="A method's setting, as k-means.n_init=3 or dcdc.heads.epochs=5; repeatable.",
        ),
    ] = None,
    minutes: Minutes = None,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of each method and seed, and show the methods side by side."""
    check_options(seeds=seeds, first_seed=first_seed, minutes=minutes, out=out)
    is_over = deadline(minutes)

    from dcdc.cli.progress import watching_runs
    from dcdc.experiments.method_process import Children
    from dcdc.experiments.method_runs import plan, read_settings, with_earlier
    from dcdc.experiments.rows import summarise
    from dcdc.experiments.sequence import n_left
    from dcdc.methods.registry import check_task
    from dcdc.prepare.cluster_number import by_number, count_clusters, is_by_classes, refuse_range
    from dcdc.prepare.overrides import Overrides
    from dcdc.prepare.prepare_run import with_label_column
    from dcdc.prepare.presets import PRESETS
    from dcdc.prepare.pretrained_choice import SCRATCH
    from dcdc.report.disagreement import shown_images
    from dcdc.runtime.device import pick_device

    names = _methods(methods)
    read_settings(settings or (), names)  # refuses before minutes go into reading images
    _check_dataset(dataset)
    flags = {
        "n_clusters": number_of_clusters(clusters),
        "train.device": device,
        "data.size": size,
        "data.target": target,
        "data.column": column,
        "data.on_bad": on_bad,
        "data.source": data,
    }
    overrides = Overrides({k: v for k, v in flags.items() if v is not None})
    refuse_range(overrides)
    asked = by_number(overrides).over(RunConfig())
    pick_device(device)
    n_classes = asked.n_clusters or (PRESETS[dataset].n_clusters if dataset in PRESETS else None)
    asked = replace(asked, data=with_label_column(asked.data, n_classes))
    backbone = None if backbone == SCRATCH else backbone
    name = (dataset or name_of_source(data)) + folder_suffix(backbone)
    folder = out or Path("runs") / "compare" / name
    refuse_if_locked(folder, _ELSEWHERE)  # before minutes go into reading images
    images = read_compared(device, asked.data, backbone, quiet=quiet)
    n_clusters = count_clusters(
        asked.n_clusters, images, by_classes=is_by_classes(overrides), may_settle=False
    )
    check_task(images, n_clusters)
    given, features = features_to_compare(images, backbone, n_clusters, device, quiet=quiet)
    chosen = fitting_methods(names, given, all_of_them=methods == _ALL)
    values = read_settings(settings or (), chosen)
    task = _task(asked, images, n_clusters, dataset, features)
    runs = plan(chosen, values, range(first_seed, first_seed + seeds), task, folder)
    title = _title(task, images)
    if not quiet:
        note(f"{title}; {counted(len(runs), 'run')} in {folder}")
    shown = shown_images(images)
    del images, given
    with locked_folder(folder, _ELSEWHERE):
        with watching_runs(n_left(runs), quiet=quiet) as watch:
            children = Children(watch=watch, is_over=is_over)
            ended = carry_out(runs, children.work, is_over, COMPARE, quiet=quiet)
        rows = summarise(runs, ended.faults, COMPARE)
        _print(rows, title)
        if any(row.finished for row in rows):
            whole = with_earlier(runs, folder)
            n_earlier = len(whole) - len(runs)
            _write(summarise(whole, ended.faults, COMPARE), title, folder, n_earlier, shown)
    leave(ended, rows)


def _methods(text: str) -> list[str]:
    from dcdc.methods import METHODS, find_method

    if text == _ALL:
        return METHODS.names()
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        known = ", ".join(METHODS.names())
        raise InputError(f"--methods {text!r} names none: give all, or some of {known}")
    for name in names:
        find_method(name)
    return names


def _check_dataset(name: str | None) -> None:
    from dcdc.data import BUILT_IN

    if name is not None and name not in BUILT_IN:
        raise InputError(unknown("data set", name, BUILT_IN))


def _task(
    asked: RunConfig,
    images: "Images",
    n_clusters: int,
    dataset: str | None,
    features: "Features | None",
) -> "Task":
    from dcdc.experiments.method_runs import Task

    named: dict[str, Any] = {}
    if n_clusters != images.n_classes:
        named["clusters"] = n_clusters
    if asked.data.size is not None:
        named["size"] = asked.data.size
    return Task(
        data=replace(asked.data, size=getattr(images, "side", None)),
        n_clusters=n_clusters,
        dataset=dataset or images.known_as,
        device=asked.train.device,
        named=named,
        features=features,
    )


def _title(task: "Task", images: "Images") -> str:
    from dcdc.cli.reading import described
    from dcdc.experiments.paper import TITLES

    title = TITLES.get(task.dataset, task.data.source)
    told = "" if task.features is None else f"; {task.features.told}"
    return f"{title}: {described(images)}, {task.n_clusters} clusters{told}"


def _print(rows: Sequence["RowResult[MethodRun]"], title: str) -> None:
    from dcdc.experiments.compare_tables import figures

    grid, sheet = Grid(), figures(rows)
    for at, head in enumerate(sheet.heads):
        is_word = at < sheet.n_words
        grid.add_column(head, justify="left" if is_word else "right", no_wrap=at != 1)
    for cells in sheet.marked():
        grid.add_row(*(Text(text, style="bold" if best else "") for text, best in cells))
    print_grid(grid, title, rows)


def _write(
    rows: Sequence["RowResult[MethodRun]"],
    title: str,
    folder: Path,
    n_earlier: int,
    shown: "ShownImages",
) -> None:
    """Every run of the folder on these images: a call for fewer takes nothing away."""
    from dcdc.experiments.compare_tables import write_page, write_tables

    earlier = f"{counted(n_earlier, 'run')} of earlier calls" if n_earlier else ""
    command = f"{own_command()}  # beside {earlier}" if earlier else own_command()
    paths = write_tables(rows, title, command, folder)
    for path in (*paths, write_page(rows, title, folder / "compare.html", shown)):
        say(f"written: {path}")
    if earlier:
        say(f"the files hold {earlier}, too")
