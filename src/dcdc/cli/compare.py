"""`dcdc compare DATA`: the methods of the paper's table on one set, side by side."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dcdc.cli.arguments import Data, DeviceName, OnBad, Quiet, Target, name_of_source
from dcdc.cli.console import note, say
from dcdc.cli.session import check_session, leave
from dcdc.config import RunConfig, with_values
from dcdc.errors import InputError
from dcdc.nearest_name import nearest
from dcdc.presets import PRESETS

if TYPE_CHECKING:
    from dcdc.compare.runs import MethodRun, Task
    from dcdc.data import ImageSet
    from dcdc.reproduce.sequence import Ended

_ALL = "all"


def compare(
    data: Data,
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="all, or some joined by commas: k-means,sc,dcdc.")
    ] = _ALL,
    seeds: Annotated[int, typer.Option(help="Runs of each method.")] = 1,
    first_seed: Annotated[int, typer.Option(help="The seeds count on from this one.")] = 0,
    clusters: Annotated[
        int | None, typer.Option(help="How many clusters to find; default one for each class.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Side in pixels to bring images to.")] = None,
    target: Target = None,
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
            help="A method's setting, as k-means.n_init=3 or dcdc.train.epochs=5; repeatable.",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Begin nothing and stop what runs after so many, ready to go on."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of each method and seed, and show the methods side by side."""
    started = time.monotonic()
    check_session(seeds=seeds, first_seed=first_seed, minutes=minutes, out=out)

    from dcdc.compare.runs import plan
    from dcdc.compare.settings import read_settings
    from dcdc.config_for_images import with_label_column
    from dcdc.runtime.device import pick_device

    chosen = _methods(methods)
    values = read_settings(settings or (), chosen)
    _check_dataset(dataset)
    flags = {
        "n_clusters": clusters,
        "train.device": device,
        "data.size": size,
        "data.target": target,
        "data.on_bad": on_bad,
        "data.source": data,
    }
    asked = with_values(RunConfig(), {k: v for k, v in flags.items() if v is not None})
    pick_device(device)
    asked = with_label_column(asked, _n_clusters_of(dataset))
    images = _read(asked, quiet)
    task = _task(asked, images, dataset)
    folder = out or Path("runs") / "compare" / (dataset or name_of_source(data))
    runs = plan(chosen, values, range(first_seed, first_seed + seeds), task, folder)
    title = _title(task, images)
    if not quiet:
        note(f"{title}; {len(runs)} run{'s' if len(runs) > 1 else ''} in {folder}")
    del images  # every run reads its own
    deadline = None if minutes is None else started + 60 * minutes
    ended = _carry_out(runs, deadline, quiet)
    n_left = _show(runs, title, folder, ended)
    leave(ended, n_left, len(runs))


def _methods(text: str) -> list[str]:
    from dcdc.methods import METHODS, find_method

    if text == _ALL:
        return list(METHODS)
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InputError(
            f"--methods {text!r} names none: give all, or some of {', '.join(METHODS)}"
        )
    for name in names:
        find_method(name)
    return names


def _check_dataset(name: str | None) -> None:
    from dcdc.data import BUILT_IN

    if name is not None and name not in BUILT_IN:
        raise InputError(
            f"unknown data set {name!r}{nearest(name, BUILT_IN)} --dataset takes a name from "
            "dcdc data list"
        )


def _n_clusters_of(dataset: str | None) -> int | None:
    return PRESETS[dataset].n_clusters if dataset in PRESETS else None


def _read(asked: RunConfig, quiet: bool) -> "ImageSet":
    """Here too, so that what cannot be read is told once, and is in the cache when it can."""
    from dcdc.cli.reading import read_configured
    from dcdc.config_for_images import largest_side_for

    side = largest_side_for(asked.train.device)
    return read_configured(asked.data, largest_side=side, quiet=quiet)


def _task(asked: RunConfig, images: "ImageSet", dataset: str | None) -> "Task":
    from dcdc.compare.runs import Task
    from dcdc.methods.method import check_task

    n_clusters = asked.n_clusters or images.n_classes
    if n_clusters is None:
        raise InputError("the images have no classes to count: say how many --clusters to find")
    check_task(images, n_clusters)
    named: dict[str, Any] = {}
    if n_clusters != images.n_classes:
        named["clusters"] = n_clusters
    if asked.data.size is not None:
        named["size"] = asked.data.size
    return Task(
        data=replace(asked.data, size=images.side),
        n_clusters=n_clusters,
        dataset=dataset or images.known_as,
        device=asked.train.device,
        named=named,
    )


def _title(task: "Task", images: "ImageSet") -> str:
    from dcdc.reproduce.paper import TITLES

    height, width, channels = images.image_shape
    return (
        f"{TITLES.get(task.dataset, task.data.source)}: {images.n_images:,} images of "
        f"{height}x{width}x{channels}, {task.n_clusters} clusters"
    )


def _carry_out(runs: Sequence["MethodRun"], deadline: float | None, quiet: bool) -> "Ended":
    from dcdc.cli.progress import watching
    from dcdc.compare.process import Children
    from dcdc.compare.standing import read_standing
    from dcdc.reproduce.sequence import carry_out_each

    def is_over() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    return carry_out_each(
        runs,
        read_standing,
        Children(watch=lambda: watching(quiet=quiet), is_over=is_over).work,
        is_over=is_over,
        say=(lambda _: None) if quiet else note,
        warn=note,
    )


def _show(runs: Sequence["MethodRun"], title: str, folder: Path, ended: "Ended") -> int:
    """How many runs are left."""
    import shlex
    import sys

    from dcdc.cli.compare_table import print_rows
    from dcdc.compare.page import write_page
    from dcdc.compare.rows import summarise
    from dcdc.compare.tables import write_tables

    rows = summarise(runs, ended.faults)
    print_rows(rows, title)
    n_left = sum(result.standing.state != "done" for row in rows for result in row.results)
    if n_left < len(runs):
        again = shlex.join(["dcdc", *sys.argv[1:]])
        for path in write_tables(rows, title, again, folder):
            say(f"written: {path}")
        say(f"written: {write_page(rows, title, folder / 'compare.html')}")
    return n_left
