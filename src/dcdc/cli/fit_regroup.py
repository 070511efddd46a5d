"""`dcdc fit --run RUN --clusters 8`: another number of clusters by the features of a finished run.

The answer is a new run folder, RUN-8: what the earlier run found stays as it is.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.cli.console import note
from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.cli.fit_result import show_result
from dcdc.cli.taking import check_taking_of, take_of
from dcdc.errors import InputError, Interrupted

if TYPE_CHECKING:
    from dcdc.config import DataConfig
    from dcdc.data import Data
    from dcdc.prediction.taking import Taking
    from dcdc.prepare.overrides import Overrides


def fit_regroup(
    run_path: Path,
    overrides: "Overrides",
    *,
    overwrite: bool,
    taking: "Taking | None",
    report: bool,
    quiet: bool,
) -> None:
    from dcdc.cli.progress import watching
    from dcdc.cli.reading import read_configured
    from dcdc.cli.recipe_lines import number_line
    from dcdc.regrouping import folder_beside, regroup
    from dcdc.run_folder import RunFolder

    if not run_path.exists():
        raise InputError(
            f"{run_path} is no run to group anew; to train one, say what to cluster: dcdc fit DATA"
        )
    earlier = RunFolder.open(run_path)
    folder = folder_beside(run_path, overrides.given["n_clusters"], overwrite=overwrite)

    def read(data: "DataConfig") -> "Data":
        images = read_configured(data, quiet=quiet)
        if taking is not None:
            check_taking_of(taking, data, images.names, 2)
        return images

    if not quiet:
        note(f"the features of {run_path} are grouped anew; what it found stays there")
    try:
        with folder.writing(), watching(quiet=quiet) as observer:
            result, images = regroup(
                earlier, overrides, folder=folder, read=read, observer=observer
            )
    except Interrupted as stopped:
        stop(f"{stopped}: nothing was written", SIGNAL_EXIT[stopped.signal])
    except KeyboardInterrupt:
        stop("interrupted: nothing was written", 130)
    if result.number is not None:
        note(number_line(result.number))
    report_file = None
    if report:
        from dcdc.report import write_report

        report_file = write_report(folder, images)
    show_result(result, folder, report_file)
    if taking is not None:
        take_of(folder, taking, quiet=quiet)
