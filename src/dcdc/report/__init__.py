"""Reads run folders and draws them for a person; never trains."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcdc.data.image_set import ImageSet
    from dcdc.run_folder import RunFolder

__all__ = ["write_report"]


def write_report(folder: "RunFolder", image_set: "ImageSet | None" = None) -> Path:
    """Draws a finished run's figures and writes its page; with the images at hand, a gallery."""
    from dcdc.report.write import write_figures_and_page  # matplotlib waits until it is needed

    return write_figures_and_page(folder, image_set)
