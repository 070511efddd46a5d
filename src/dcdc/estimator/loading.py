"""`dcdc.load`: the model of a run folder, which also shows what the run grouped."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcdc import run
from dcdc.data import Data, load_data
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError
from dcdc.estimator.showing import copied_page, page_path
from dcdc.estimator.words import in_python_words
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import how_to_read
from dcdc.regrouping import folder_beside
from dcdc.regrouping import regroup as group_anew
from dcdc.run_folder import RunFolder

if TYPE_CHECKING:
    from dcdc.report.cluster_gallery import ClusterGallery


def load(path: str | Path, device: str = "auto") -> TrainedModel:
    """The model of a finished run, or of a model folder, ready to predict and to show its run."""
    return _displayed(run.load(path, device), path)


def from_pretrained(
    repo_or_folder: str | Path, device: str = "auto", *, revision: str | None = None
) -> TrainedModel:
    """The model of a folder or, by the extra `hub`, of a Hugging Face repository OWNER/NAME."""
    model = run.from_pretrained(repo_or_folder, device, revision=revision)
    return _displayed(model, repo_or_folder)


def regroup(
    run_folder: str | Path,
    n_clusters: int | str,
    *,
    folder: str | Path | None = None,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
) -> TrainedModel:
    """Another number of clusters, or "auto", for a finished run: new heads on its features, in
    seconds. It is a run of its own, in `folder`; None: beside the other, as runs/photos-8."""
    earlier = Path(run_folder)
    given = {"train.device": device, **(settings or {}), "n_clusters": n_clusters}
    with in_python_words():
        new = (
            folder_beside(earlier, n_clusters) if folder is None else RunFolder.create(Path(folder))
        )
        with new.writing():
            group_anew(RunFolder.open(earlier), Overrides(given), folder=new)
    return load(new.path, device)


def _displayed(model: TrainedModel, path: str | Path) -> TrainedModel:
    model.display = RunDisplay(RunFolder(Path(path)))
    return model


class RunDisplay:
    """What a run folder tells of its images; these are read where the run found them."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def gallery(self, per_cluster: int) -> "ClusterGallery":
        from dcdc.report.cluster_gallery import ClusterGallery  # matplotlib waits until now
        from dcdc.report.facts import describe_clusters, read_facts
        from dcdc.report.page import pictures_for

        if not self.folder.assignments_file.exists():
            return ClusterGallery([], np.empty(0), no_pictures=self._of_no_run())
        facts = read_facts(self.folder)
        pictures, why = pictures_for(facts, self._images())
        return ClusterGallery(
            describe_clusters(facts),
            facts.confidence,
            facts.names,
            pictures,
            why,
            facts.cluster_names,
            per_cluster,
            facts.things,
        )

    def report(self, path: str | Path | None) -> Path:
        from dcdc.report import write_report

        if not self.folder.assignments_file.exists():
            raise InputError(self._of_no_run())
        target = None if path is None else page_path(path)
        written = write_report(self.folder, self._images())
        return written if target is None else copied_page(written, target)

    def _of_no_run(self) -> str:
        return f"{self.folder.path} holds a model and no images: load the run folder to see them"

    def _images(self) -> Data | None:
        data = run.read_config(self.folder).data
        try:
            return load_data(data.source, **how_to_read(data))
        except InputError:
            return None
