"""What a fitted estimator shows: the gallery of its clusters, and the page of its training.

Shapes: N images, K clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcdc.config import RunConfig
from dcdc.data import Data
from dcdc.data.pictures import Pictures, pictures_of
from dcdc.engine.taught import Taught
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.run import target_names, write_run
from dcdc.run_folder import RunFolder
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from dcdc.report.cluster_gallery import ClusterGallery

PAGE = "dcdc-report.html"


@dataclass(frozen=True, eq=False)
class Grouped:
    """What `fit` grouped and measured, as long as the estimator stays in this process."""

    data: Data | None
    """None in a pickle, which does not hold the images."""
    names: Sequence[str]
    labels: NDArray[np.int64]
    """N"""
    confidence: NDArray[np.float32]
    """N"""
    n_clusters: int
    metrics: dict[str, Any]
    history: list[dict[str, Any]]
    taught: Taught | None = None
    """By people, in `refine`."""

    def gallery(self, per_cluster: int) -> "ClusterGallery":
        from dcdc.report.cluster_gallery import ClusterGallery  # matplotlib waits until now
        from dcdc.report.facts import clusters_of

        known = None if self.data is None else target_names(self.data)
        targets = None if known is None else np.array(known)
        pictures, why = self._pictures()
        return ClusterGallery(
            clusters_of(self.labels, self.confidence, self.n_clusters, targets),
            self.confidence,
            self.names,
            pictures,
            why,
            per_cluster=per_cluster,
            things="vectors" if "n_features" in self.metrics else "images",
        )

    def _pictures(self) -> tuple[Pictures | None, str | None]:
        if self.data is None:
            return None, "No pictures: a pickle does not hold the images."
        return pictures_of(self.data)

    def report(self, config: RunConfig, model: TrainedModel, path: str | Path | None) -> Path:
        from dcdc.report import write_report

        target = page_path(PAGE if path is None else path)
        if self.data is None:
            raise InputError("a report needs the images, which a pickle does not hold: fit again")
        if self.n_clusters < 2:
            raise InputError("a report needs at least two clusters, and the model has one")
        with TemporaryDirectory() as parent:
            folder = RunFolder.create(Path(parent) / target.stem)
            metrics = dict(self.metrics)
            write_run(folder, config, self.data, model, metrics, self.history, taught=self.taught)
            return copied_page(write_report(folder, self.data), target)


def page_path(path: str | Path) -> Path:
    """Where a page may be written, in the place of an older one."""
    target = Path(path)
    if target.suffix != ".html" or target.is_dir():
        raise InputError(f"path={str(path)!r} must be a file that ends in .html")
    return target


def copied_page(page: Path, target: Path) -> Path:
    write_text(target, page.read_text(encoding="utf-8"))
    return target
