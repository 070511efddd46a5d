"""What a person takes away of a run, by `dcdc fit` as by `dcdc export`."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.console import say
from dcdc.cli.faults import stop
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.prediction.sorting import Files, Sorting
    from dcdc.prediction.taking import Taking
    from dcdc.run_folder import RunFolder

_PANEL = "Answers for other programs"
CopyTo = Annotated[
    Path | None, typer.Option(help="Copy every image file into a folder per cluster in here.")
]
LinkTo = Annotated[
    Path | None, typer.Option(help="As --copy-to, but by symbolic links to where files lie.")
]
CopyRunTo = Annotated[
    Path | None,
    typer.Option(
        "--copy-to",
        metavar="DIR",
        help="Copy every image file into a folder per cluster in here.",
        rich_help_panel=_PANEL,
    ),
]
LinkRunTo = Annotated[
    Path | None,
    typer.Option(
        "--link-to",
        metavar="DIR",
        help="As --copy-to, but by symbolic links to where files lie.",
        rich_help_panel=_PANEL,
    ),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="A row per image: .csv for spreadsheets, .parquet or .jsonl.",
        rich_help_panel=_PANEL,
    ),
]
Xmp = Annotated[
    Path | None,
    typer.Option(
        "--xmp",
        metavar="DIR",
        help="XMP sidecars with the cluster as a keyword, in here; the folder of the photos itself "
        "puts them beside the photos.",
        rich_help_panel=_PANEL,
    ),
]
Lightroom = Annotated[
    bool,
    typer.Option(
        "--lightroom",
        help="Name sidecars IMG_1.xmp, as Lightroom looks for them, and not IMG_1.jpg.xmp.",
        rich_help_panel=_PANEL,
    ),
]
FiftyOne = Annotated[
    Path | None,
    typer.Option(
        "--fiftyone",
        metavar="FILE",
        help="Labels for FiftyOne (FiftyOneImageClassificationDataset), .json.",
        rich_help_panel=_PANEL,
    ),
]


def read_sorting(copy_to: Path | None, link_to: Path | None) -> "Sorting | None":
    if copy_to is not None and link_to is not None:
        raise InputError("--copy-to and --link-to exclude each other: choose one")
    folder = copy_to or link_to
    if folder is None:
        return None
    from dcdc.prediction.sorting import Sorting

    return Sorting(folder, by_link=link_to is not None)


def read_taking(
    copy_to: Path | None,
    link_to: Path | None,
    table: Path | None,
    xmp: Path | None,
    lightroom: bool,
    fiftyone: Path | None,
) -> "Taking | None":
    """None where nothing was asked for."""
    sorting = read_sorting(copy_to, link_to)
    if lightroom and xmp is None:
        raise InputError("--lightroom is for sidecars: say where by --xmp DIR")
    if not any((sorting, table, xmp, fiftyone)):
        return None
    from dcdc.prediction.sidecars import Sidecars
    from dcdc.prediction.taking import Taking

    sidecars = None if xmp is None else Sidecars(xmp, like_lightroom=lightroom)
    return Taking(sorting, table, sidecars, fiftyone)


def check_taking_of(
    taking: "Taking", data: "DataConfig", names: "Sequence[str]", n_clusters: int
) -> None:
    """Of a run of these images, before minutes go into training."""
    from dcdc.prediction.run_answers import run_files
    from dcdc.prediction.taking import check_taking

    files = None
    if taking.needs_files:
        files = run_files({f"data.{key}": value for key, value in asdict(data).items()}, names)
    check_taking(taking, files, n_clusters)


def take_of(folder: "RunFolder", taking: "Taking", *, quiet: bool) -> None:
    """Of a finished run, as people corrected it."""
    from dcdc.cli.progress import counting
    from dcdc.prediction.run_answers import read_corrected, run_files
    from dcdc.prediction.taking import said, take_away

    run = read_corrected(folder)
    files: Files | None = None
    if taking.needs_files:
        files = run_files(folder.read_flat_config(), run.names)
    key = hashlib.sha256(bytes(folder.path.resolve())).hexdigest()[:12]
    try:
        with counting(quiet=quiet) as progress:
            taken = take_away(taking, run, files, key=key, progress=progress)
    except KeyboardInterrupt:
        again = f"dcdc export {folder.path} with the same options"
        stop(f"interrupted while files were written; go on with: {again}", 130)
    for line in said(taking, taken):
        say(line)
