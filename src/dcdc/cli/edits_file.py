"""`--edits FILE`: corrections that somebody made on a page, taken into the run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.console import say
from dcdc.counted import counted

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

EditsFile = Annotated[
    Path | None,
    typer.Option(
        "--edits",
        metavar="FILE",
        help="Corrections, as report.html saves them; added to those of the run folder.",
    ),
]


def take_edits(folder: "RunFolder", file: Path) -> None:
    """All of them or none; they come after those that are there."""
    from dcdc.engine.edits import read_edits
    from dcdc.viewer.corrections import Corrections

    answers = folder.read_answers()
    theirs = read_edits(file, answers)
    n_new = Corrections(folder, answers).take(theirs)
    there = "" if n_new else ", all there already"
    say(f"{counted(n_new, 'correction')} taken from {file}{there}")
