"""Arguments that several verbs share, and what is made of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.console import say
from dcdc.printable import counted

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A folder of images, Parquet, a CSV or text list of paths, .npy, .npz, feature "
        "vectors where the run has them, or a name from dcdc data list.",
    ),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, such as runs/digits.")]
DeviceName = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Clusters = Annotated[
    str | None,
    typer.Option(
        "--clusters",
        metavar="NUMBER",
        help="How many clusters to find; auto, or a range such as 5-40: what the images settle on; "
        "classes: one for each class, or sub-folder, of DATA.",
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        help="Of the clusters: equal (default), free: whatever the images ask for, or the share of "
        "each, such as 0.5,0.3,0.2.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Label column of Parquet or of a list, to score against; none: no labels, nor those "
        "of sub-folders.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option("--column", help="Column or array of feature vectors, where there are several."),
]
OnBad = Annotated[str, typer.Option("--on-bad", help="Images that cannot be read: refuse or skip.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Any other setting; repeatable."),
]
Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Draw it, or leave it to dcdc report RUN.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, results alone.")]
EditsFile = Annotated[
    Path | None,
    typer.Option(
        "--edits",
        metavar="FILE",
        help="Corrections, as report.html saves them; added to those of the run folder.",
    ),
]


def number_of_clusters(text: str | None) -> int | str | None:
    """What is no number is told of later, with all that it could be."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def name_of_source(source: str) -> str:
    """For a folder of its own."""
    path = Path(source)
    return (path.resolve().stem if path.exists() else path.name) or "run"


def take_edits(folder: "RunFolder", file: Path) -> None:
    """All of them or none; they come after those that are there."""
    from dcdc.engine.edits import read_edits
    from dcdc.viewer.corrections import Corrections

    answers = folder.read_answers()
    theirs = read_edits(file, answers)
    n_new = Corrections(folder, answers).take(theirs)
    there = "" if n_new else ", all there already"
    say(f"{counted(n_new, 'correction')} taken from {file}{there}")
