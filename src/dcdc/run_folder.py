"""The run folder: the unit of everything that lasts, and the names of what lies in it."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from dcdc.config.keys import flatten
from dcdc.engine import model_files
from dcdc.engine.cluster_names import read_names, write_names
from dcdc.engine.history import HISTORY, read_history
from dcdc.errors import InputError
from dcdc.runtime.array_files import DamagedArraysError, read_arrays, write_arrays
from dcdc.runtime.atomic_files import atomic_file, remove_leftovers, write_text
from dcdc.runtime.csv_text import csv_lines


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / model_files.CONFIG
        self.history_file = path / HISTORY
        self.model_file = path / model_files.WEIGHTS
        self.assignments_file = path / "assignments.parquet"
        self.metrics_file = path / model_files.METRICS
        self.names_file = path / model_files.NAMES
        self.card_file = path / model_files.CARD
        self.sample_file = path / "sample.npz"
        self.reference_file = path / model_files.REFERENCE
        self.map_file = path / "map.npz"
        self.report_file = path / "report.html"
        self.skipped_file = path / "skipped.csv"
        self.figures = path / "figures"
        self.job_file = path / "job"
        self.backbone = path / model_files.BACKBONE

    @classmethod
    def create(cls, path: Path, *, overwrite: bool = False) -> "RunFolder":
        """An empty run folder; one that exists is refused, or replaced if it is a run."""
        folder = cls(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            if not overwrite:
                raise InputError(
                    f"run folder {path} exists",
                    remedy=(
                        "go on with it by {resume}",
                        "replace it by {overwrite}",
                        "choose another by {run}",
                    ),
                )
            if not folder.config_file.is_file():
                raise InputError(
                    f"{path} is not a run folder, so it is not overwritten",
                    remedy="choose another by {run}",
                )
            shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        folder = cls(path)
        if not folder.config_file.is_file():
            raise InputError(f"{path} is not a run folder (it has no {folder.config_file.name})")
        if path.is_dir():
            remove_leftovers(path)
        return folder

    def write_config(self, config: dict[str, Any]) -> None:
        model_files.write_config(self.config_file, config)

    def read_config(self) -> dict[str, Any]:
        return model_files.read_config(self.config_file)

    def read_flat_config(self) -> dict[str, Any]:
        """Every value by its `section.key`."""
        return flatten(self.read_config())

    def write_job(self, job: str) -> None:
        """The name under which torchrun started it."""
        write_text(self.job_file, job + "\n")

    def is_of_job(self, job: str | None) -> bool:
        if job is None or not self.job_file.is_file():
            return False
        return self.job_file.read_text(encoding="utf-8").strip() == job

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        model_files.write_metrics(self.metrics_file, metrics)

    def read_metrics(self) -> dict[str, Any]:
        return model_files.read_json(self.metrics_file)

    def read_history(self) -> list[dict[str, Any]]:
        return read_history(self.history_file)

    def write_model(self, network: torch.nn.Module, metadata: dict[str, Any]) -> None:
        model_files.write_weights(self.model_file, network, metadata)

    def read_model(self) -> dict[str, torch.Tensor]:
        if not self.model_file.is_file():
            raise InputError(
                f"{self.path} has no model yet",
                remedy=("finish it by dcdc fit {resume}", f"add its {self.model_file.name}"),
            )
        return model_files.read_weights(self.model_file)

    def write_card(self, card: str) -> None:
        write_text(self.card_file, card)

    def write_assignments(
        self,
        names: Sequence[str],
        assignments: np.ndarray,
        confidence: np.ndarray,
        targets: Sequence[str] | None,
        runner_up: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        write_assignments(self.assignments_file, names, assignments, confidence, targets, runner_up)

    def read_assignments(self) -> pa.Table:
        if not self.assignments_file.is_file():
            raise InputError(
                f"{self.path} has no assignments yet", remedy="finish it by dcdc fit {resume}"
            )
        try:
            return pq.read_table(self.assignments_file)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"assignments {self.assignments_file} are damaged: {error}") from None

    def write_sample(self, arrays: Mapping[str, np.ndarray]) -> None:
        write_arrays(self.sample_file, arrays)

    def read_sample(self) -> dict[str, np.ndarray] | None:
        """None where a run has none, as runs of earlier versions."""
        if not self.sample_file.is_file():
            return None
        try:
            return read_arrays(self.sample_file)
        except DamagedArraysError as error:
            raise InputError(
                f"sample file {self.sample_file} is damaged ({error}): remove it, and dcdc report "
                "makes it again"
            ) from None

    def read_training_features(self, n_features: int) -> np.ndarray | None:
        """n x D of some training images: a model folder's own file, or from a run's sample."""
        file = next(filter(Path.is_file, (self.reference_file, self.sample_file)), None)
        if file is None:
            return None
        try:
            features = read_arrays(file).get("features")
        except DamagedArraysError as error:
            raise InputError(
                f"{file} is damaged ({error}): remove it, and out-of-distribution images are "
                "no longer told"
            ) from None
        fits = features is not None and features.ndim == 2 and features.dtype.kind == "f"
        if features is None or not fits or features.shape[1] != n_features:
            found = "no features" if features is None else f"features of shape {features.shape}"
            raise InputError(
                f"{file} has {found}, the model has {n_features} an image: remove it, and "
                "out-of-distribution images are no longer told"
            )
        return features if np.isfinite(features).all() else None

    def write_skipped(self, skipped: Sequence[tuple[str, str]]) -> None:
        write_text(self.skipped_file, skipped_table(skipped))

    def write_names(self, names: Mapping[int, str]) -> None:
        write_names(self.names_file, names)

    def read_names(self, file: Path | None = None) -> dict[int, str]:
        """What people called the clusters, from another file or the run's; empty if nobody did."""
        if file is None and not self.names_file.exists():
            return {}
        n_clusters = self.read_config().get("n_clusters") or 0
        return read_names(file or self.names_file, int(n_clusters))


def skipped_table(skipped: Iterable[tuple[str, str]]) -> str:
    """Of names and reasons, as CSV."""
    return csv_lines([("name", "reason"), *skipped])


def write_assignments(
    path: Path,
    names: Sequence[str],
    assignments: np.ndarray,
    confidence: np.ndarray,
    targets: Sequence[str] | None,
    runner_up: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """name, cluster, confidence and, if known, target and the second-best cluster with its own
    confidence."""
    columns: dict[str, pa.Array] = {
        "name": pa.array(list(names), pa.string()),
        "cluster": pa.array(assignments, pa.int32()),
        "confidence": pa.array(confidence, pa.float32()),
    }
    if targets is not None:
        columns["target"] = pa.array(list(targets), pa.string())
    if runner_up is not None:
        columns["runner_up"] = pa.array(runner_up[0], pa.int32())
        columns["runner_up_confidence"] = pa.array(runner_up[1], pa.float32())
    table = pa.table(columns)
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
