"""Reads run folders and draws them for a person; never trains."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcdc.data.vector_set import Data
    from dcdc.report.map_layout import Places
    from dcdc.run_folder import RunFolder

__all__ = ["write_comparison", "write_report"]


def write_report(
    folder: "RunFolder", image_set: "Data | None" = None, *, t_sne: "Places | None" = None
) -> Path:
    """Draws a finished run's figures and writes its page; with the images at hand, a gallery.
    `t_sne` lays out the map where there is a faster one than the usual."""
    from dcdc.report.page import write_figures_and_page  # matplotlib waits until it is needed

    with folder.writing():
        return write_figures_and_page(folder, image_set, t_sne)


def write_comparison(folders: "Sequence[RunFolder]", path: Path) -> Path:
    """Writes a page that shows finished runs side by side."""
    from dcdc.report.compare import write_runs
    from dcdc.report.compared_runs import read_runs

    return write_runs(read_runs(folders), path)
