"""`dcdc refine RUN`: a run learns from what people corrected in it, in a run folder of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcdc.cli.arguments import Quiet, Report, Run, Settings
from dcdc.cli.console import note, print_scores, say
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.cli.fit_result import say_where
from dcdc.errors import InputError, Interrupted
from dcdc.printable import counted

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.data import Data
    from dcdc.run import RunResult
    from dcdc.run_folder import RunFolder


def refine(
    run: Run,
    run_folder: Annotated[
        Path | None, typer.Option("--run", help="New run folder; default RUN-refined.")
    ] = None,
    edits: Annotated[
        Path | None, typer.Option(help="What people corrected; default edits.json of RUN.")
    ] = None,
    whole_network: Annotated[
        bool,
        typer.Option("--whole-network", help="Train the backbone too, not the cluster head alone."),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Random seed; default that of RUN.")] = None,
    settings: Settings = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run folder that exists.")
    ] = False,
    report: Report = True,
    quiet: Quiet = False,
) -> None:
    """Train on from a run by what people corrected in it; RUN stays as it is."""
    from dcdc.cli.progress import watching
    from dcdc.cli.reading import read_configured
    from dcdc.config import parse_settings
    from dcdc.prepare.overrides import Overrides
    from dcdc.refining import refine as train_on
    from dcdc.run_folder import RunFolder, refined_name

    asked = {"train.device": device, "train.seed": seed}
    given = {key: value for key, value in asked.items() if value is not None}
    overrides = Overrides(given | parse_settings(settings or []))
    corrected = RunFolder.open(run)
    path = run_folder or refined_name(run)
    if path.resolve() == run.resolve():
        raise InputError(f"--run {path} is the corrected run, which stays as it is: name another")
    folder = RunFolder.create(path, overwrite=overwrite)

    def read(data: "DataConfig") -> "Data":
        return read_configured(data, quiet=quiet)

    with _telling_what_is_left(folder), folder.writing(), watching(quiet=quiet) as observer:
        result, images = train_on(
            corrected,
            overrides,
            edits=edits,
            whole_network=whole_network,
            folder=folder,
            read=read,
            observer=observer,
        )
    report_file = None
    if report:
        from dcdc.report import write_report

        report_file = write_report(folder, images)
    _show(result, corrected, folder, report_file)


@contextmanager
def _telling_what_is_left(folder: "RunFolder") -> Iterator[None]:
    """After a signal."""
    way_on = f"go on with: dcdc fit --run {folder.path} --resume"
    try:
        yield
    except Interrupted as stopped:
        stop(f"{stopped}, state saved; {way_on}", SIGNAL_EXIT[stopped.signal])
    except KeyboardInterrupt:
        nothing = "interrupted before training began: no run was written"
        stop(nothing if folder.is_new else f"interrupted; {way_on}", 130)


def _show(
    result: "RunResult", corrected: "RunFolder", folder: "RunFolder", report_file: Path | None
) -> None:
    from dcdc.metrics.provenance import origin

    metrics = result.metrics
    refined = metrics["refined"]
    before = corrected.read_metrics()["scores"]
    if metrics["scores"]:
        rows = {"before": before, "refined": metrics["scores"]}
        print_scores({name: row for name, row in rows.items() if row}, origin(metrics))
    else:
        say("no targets, so no ACC, NMI or ARI")
    say(
        f"{metrics['n_clusters']} clusters; the network answers {refined['learnt']:,} of "
        f"{counted(refined['labelled'], 'corrected image')} as told"
    )
    if refined["outside"]:
        note(f"{counted(refined['outside'], 'image')} in no cluster, left out of scores")
    say(f"trained in {metrics['training_seconds']:.1f} s on {metrics['device']}")
    say_where(folder, report_file)
