"""`dcdc report RUN`: draw a run's report again; `dcdc report RUN RUN ...`: compare runs."""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.arguments import EditsFile, Quiet, take_edits
from dcdc.cli.console import note, say
from dcdc.errors import InputError
from dcdc.stored.reading import DamagedFileError

if TYPE_CHECKING:
    from dcdc.data import Data
    from dcdc.run_folder import RunFolder

_LONGEST_NAME = 80


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folder; several are compared on one page."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Page that compares several runs; default compare-RUN-RUN.html, here."),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(help="Names of the clusters, as the page saves them; kept in the run folder."),
    ] = None,
    edits: EditsFile = None,
    quiet: Quiet = False,
) -> None:
    """Rebuild the report and figures of a finished run, or compare several runs."""
    from dcdc.report import write_comparison
    from dcdc.run_folder import RunFolder

    if len(runs) == 1:
        if out is not None:
            raise InputError(
                f"--out is for the page that compares several runs: the report of {runs[0]} is "
                "written into it"
            )
        folder = RunFolder.open(runs[0])
        with folder.writing():
            if edits is not None:
                take_edits(folder, edits)
            _report(folder, names, quiet)
        return
    for flag, file in (("--names", names), ("--edits", edits)):
        if file is not None:
            raise InputError(
                f"{flag} is for the report of one run: the clusters of another are others"
            )
    out = out or _page_of(runs)
    if out.suffix != ".html":
        raise InputError(f"--out {out} must end in .html")
    say(f"comparison: {write_comparison([RunFolder.open(run) for run in runs], out)}")


def _page_of(runs: list[Path]) -> Path:
    """Of these runs alone: that of others is not written over."""
    here = Path.cwd()
    paths = [run.resolve() for run in runs]
    known = [path.relative_to(here) if path.is_relative_to(here) else path for path in paths]
    parts = [part for path in known for part in path.parts if part not in (path.anchor, "runs")]
    name = re.sub(r"[^\w.]+", "-", "-".join(parts))
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256("\0".join(map(str, paths)).encode(errors="replace")).hexdigest()[:12]
    return Path(f"compare-{name}.html")


def _report(folder: "RunFolder", names: Path | None, quiet: bool) -> None:
    from dcdc.cli.reading import read_configured
    from dcdc.report import write_report
    from dcdc.run import read_config

    folder.read_assignments()  # refuses a run that has not finished
    folder.read_metrics()
    config = read_config(folder)
    known_names = folder.read_names(names)  # refused before the images are read, not after
    if names is not None:
        folder.write_names(known_names)
    try:
        image_set = read_configured(config.data, quiet=quiet)
    except InputError as error:
        note(f"warning: the images are not at hand, so the page has no galleries ({error})")
        image_set = None
    if image_set is not None and (why := _why_no_sample(folder)):
        _add_sample(folder, image_set, why, quiet)
    say(f"report: {write_report(folder, image_set)}")


def _why_no_sample(folder: "RunFolder") -> str | None:
    """None where there is a good one; runs of earlier versions left none."""
    from dcdc.report.facts import read_sample

    try:
        return None if read_sample(folder) else "the run has no sample of its features"
    except DamagedFileError as error:
        return error.problem


def _add_sample(folder: "RunFolder", image_set: "Data", why: str, quiet: bool) -> None:
    from dcdc.report.facts import read_facts
    from dcdc.run import add_sample

    if read_facts(folder).why_not_these_images(image_set):
        return  # the page says so
    if not quiet:
        note(f"{why}: the model makes one, once")
    try:
        add_sample(folder, image_set)
    except InputError as error:
        note(f"warning: the page has no map and no affinities ({error})")
