"""What `dcdc fit` says of a run that is done."""

from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.cli.console import print_scores, say
from dcdc.printable import counted

if TYPE_CHECKING:
    from dcdc.run import RunResult
    from dcdc.run_folder import RunFolder


def show_result(result: "RunResult", folder: "RunFolder", report_file: Path | None) -> None:
    from dcdc.metrics.provenance import origin

    metrics = result.metrics
    marked = origin(metrics)
    if metrics["scores"]:
        print_scores({**metrics["baselines"], "DCDC": metrics["scores"]}, marked)
    else:
        say("no targets, so no ACC, NMI or ARI")
        if marked is not None:
            say(marked)
    health = metrics["health"]
    say(
        f"{health['active_clusters']} of {metrics['n_clusters']} clusters in use, sizes "
        f"{min(health['sizes'])} to {max(health['sizes'])}, mean share "
        f"{health['mean_confidence']:.2f}"
    )
    if "n_outliers" in metrics:
        say(f"{counted(metrics['n_outliers'], 'image')} in no cluster (-1)")
    say(
        f"trained {counted(metrics['epochs'], 'epoch')} in {metrics['training_seconds']:.1f} s on "
        f"{metrics['device']}"
    )
    say_where(folder, report_file)


def say_where(folder: "RunFolder", report_file: Path | None) -> None:
    say(f"run folder: {folder.path}")
    say(f"report:     {report_file or f'dcdc report {folder.path}'}")
