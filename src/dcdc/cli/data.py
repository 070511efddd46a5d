"""`dcdc data`: which benchmarks there are, how each is used, and the getting of their files."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal
from rich.table import Table

from dcdc.cli.arguments import Target
from dcdc.cli.console import err, note, out, say, say_fact
from dcdc.cli.faults import stop
from dcdc.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from dcdc.data.benchmarks.catalogue import Benchmark

data_app = typer.Typer(
    no_args_is_help=True, help="Benchmarks: list, describe and get them. Sources: look into them."
)

_DIGITS = "digits"
_DIGITS_INFO = """\
digits: 1,797 hand-written digits of 8 x 8 grey pixels in 10 classes
trains     both heads on all images
evaluated  all images, against the 10 digits
files      come with scikit-learn: nothing to get
citation   Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998
licence    CC BY 4.0
try        dcdc fit digits"""
_PLAIN_LINES = 4  # per file, without a terminal


@data_app.command("list")
def list_benchmarks() -> None:
    """List the benchmarks, and which of them are here."""
    from dcdc.data.benchmarks.catalogue import BENCHMARKS, is_here

    table = Table(box=None, pad_edge=False)
    table.add_column("name")
    for title in ("images", "classes", "side"):
        table.add_column(title, justify="right")
    table.add_column("files")
    table.add_row(_DIGITS, "1,797", "10", "8", "built in")
    for known in BENCHMARKS.values():
        state = "by hand" if known.by_hand else f"{decimal(known.n_bytes)} to get"
        if is_here(known):
            state = "here"
        table.add_row(
            known.name, f"{known.n_images:,}", str(known.n_classes), str(known.side), state
        )
    out.print(table)


@data_app.command("info")
def info(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A name from dcdc data list, or what fit takes."),
    ],
    target: Target = None,
) -> None:
    """Say what a source holds; of a benchmark, how it is used, where it is and who made it."""
    from dcdc.data.benchmarks.catalogue import BENCHMARKS

    if source == _DIGITS:
        for line in _DIGITS_INFO.splitlines():
            say(line)
    elif source in BENCHMARKS:
        _say_protocol(BENCHMARKS[source])
    else:
        _say_contents(source, target)


def _say_contents(source: str, target: str | None) -> None:
    from dcdc.cli.progress import counting
    from dcdc.cli.source_lines import source_lines
    from dcdc.data.contents import contents_of

    with counting() as progress:
        found = contents_of(source, target, lambda done, n: progress("looking", done, n))
    for line in source_lines(source, found):
        say(line)


def _say_protocol(known: "Benchmark") -> None:
    name = known.name
    splits = ", ".join(f"{split} {count:,}" for split, count in known.splits.items())
    answered = " + ".join(known.answered)
    side = f"{known.side} x {known.side} pixels"
    say(f"{known.name}: {known.title}, {known.n_classes} classes, {side}")
    say_fact("splits", splits)
    say_fact("trains", f"both heads on {answered} ({known.n_images:,} images)")
    if known.extra:
        say_fact("", f"the over-clustering head on {' + '.join(known.extra)} too")
    say_fact("evaluated", f"{answered}, against {known.targets}")
    say_fact("preset", known.paper_preset or "none: the paper does not use it")
    _say_where(known)
    say_fact("citation", known.citation)
    say_fact("licence", known.licence)
    say_fact("try", f"dcdc fit {name}")
    if known.paper_preset:
        say_fact("", f"dcdc fit {name} --preset {known.paper_preset}")


def _say_where(known: "Benchmark") -> None:
    from dcdc.data.benchmarks.catalogue import folder_of, how_to_place, is_here

    if is_here(known):
        say(f"files      here, in {folder_of(known)}")
        return
    if known.files:
        say_fact("files", f"{decimal(known.n_bytes)} to get: dcdc data get {known.name}")
        for file in known.files:
            say_fact("", f"{file.url} (md5 {file.md5})")
    say_fact("by hand", how_to_place(known))


@data_app.command("get")
def get(names: Annotated[list[str], typer.Argument(help="Names from dcdc data list.")]) -> None:
    """Download benchmarks; one that was interrupted is gone on with."""
    from dcdc.data.benchmarks.catalogue import benchmark, folder_of, how_to_place, is_here
    from dcdc.data.benchmarks.download import fetch

    wanted = [benchmark(name) for name in dict.fromkeys(names) if name != _DIGITS]
    for known in wanted:
        if known.by_hand and not is_here(known):
            raise InputError(f"{known.name} is not here: {how_to_place(known)}")
    if _DIGITS in names:
        say("digits comes with scikit-learn: nothing to get")
    for known in wanted:
        was_here = is_here(known)
        try:
            with _getting() as progress:
                fetch(known, progress)
        except KeyboardInterrupt:
            stop(f"interrupted; go on with: dcdc data get {known.name}", 130)
        say(f"{known.name} is here{' already' if was_here else ''}: {folder_of(known)}")


@data_app.command("cache")
def cache(
    clear: Annotated[
        bool,
        typer.Option(
            "--clear", help="Remove decoded images and thumbnails, which can be made again."
        ),
    ] = False,
) -> None:
    """Show where downloads, decoded images and thumbnails are kept, and how big they are."""
    from dcdc.data.cache_folder import cache_folder
    from dcdc.data.row_cache import clear_rows

    folder = cache_folder()
    if clear:
        from dcdc.viewer.thumbnails import clear_thumbnails

        before = _bytes_below(folder / "decoded")
        for entry, why in clear_rows():
            note(f"left {entry}: {why}")
        say(f"removed {decimal(before - _bytes_below(folder / 'decoded'))} of decoded images")
        clear_thumbnails()
    say(f"cache folder {folder} (set DCDC_DATA to choose another)")
    for part in ("downloads", "decoded", "thumbnails"):
        say(f"{part:12} {decimal(_bytes_below(folder / part))}")


@contextmanager
def _getting() -> Iterator[Callable[[str, int, int], None]]:
    """A callback (what, bytes done, bytes in all or 0): a bar, or a few plain lines."""
    if not err.is_terminal:
        yield _plain_lines()
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done)

        yield show


def _plain_lines() -> Callable[[str, int, int], None]:
    shown: dict[str, int] = {}

    def show(what: str, done: int, total: int) -> None:
        quarter = _PLAIN_LINES * done // total if total else 0
        if quarter > shown.get(what, -1):
            shown[what] = quarter
            note(f"{what}: {decimal(done)} of {decimal(total)}" if total else what)

    return show


def _bytes_below(folder: "Path") -> int:
    return sum(
        os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - many thousand of them
        for parent, _, names in os.walk(folder)
        for name in names
    )
