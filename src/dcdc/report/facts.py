"""A finished run, read from its folder into plain values.

Shapes: N images.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dcdc.data.image_set import ImageSet
    from dcdc.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class RunFacts:
    path: Path
    config: dict[str, Any]  # by `section.key`
    metrics: dict[str, Any]
    history: list[dict[str, Any]]
    names: list[str]
    assignments: NDArray[np.int64]  # N
    confidence: NDArray[np.float64]  # N
    targets: NDArray[np.str_] | None  # N
    skipped: list[tuple[str, str]]  # name, reason
    runner_up: NDArray[np.int64] | None = None  # N: the second choice, where it was kept
    runner_up_confidence: NDArray[np.float64] | None = None  # N
    cluster_names: Mapping[int, str] = field(default_factory=dict)  # what people called them

    @property
    def certainty(self) -> NDArray[np.float64]:
        """How far the first choice leads, or its confidence where the second is not known."""
        if self.runner_up_confidence is None:
            return self.confidence
        return self.confidence - self.runner_up_confidence

    @property
    def n_clusters(self) -> int:
        return int(self.metrics["n_clusters"])

    @property
    def source(self) -> str:
        """What the images came from; empty for a run that was handed arrays."""
        return str(self.config.get("data.source") or "")

    @property
    def warnings(self) -> list[str]:
        """What was wrong with the partition when training ended."""
        return list(self.history[-1].get("warnings", ())) if self.history else []

    def phase(self, name: str) -> Mapping[str, Any]:
        """What a phase of the training calls itself in figures, where the run has kept it."""
        return next((p for p in self.metrics.get("phases", ()) if p.get("name") == name), {})

    def series(self, key: str) -> tuple[list[int], list[float]]:
        """Epochs and values of a history key, where it was recorded."""
        found = [(line["epoch"], line[key]) for line in self.history if line.get(key) is not None]
        return [epoch for epoch, _ in found], [float(value) for _, value in found]

    def why_not_these_images(self, image_set: "ImageSet") -> str | None:
        """Nothing when `image_set` holds the run's images in their order; else what differs."""
        if image_set.n_images != len(self.names):
            return f"the run has {len(self.names)} images, the set at hand has {image_set.n_images}"
        for position, (ours, theirs) in enumerate(zip(self.names, image_set.names, strict=True)):
            if ours != theirs:
                return f"image {position} is {ours!r} in the run but {theirs!r} in the set at hand"
        return None


def read_facts(folder: "RunFolder") -> RunFacts:
    # The assignments first: their absence tells best that a run is not finished.
    table = folder.read_assignments()
    columns = set(table.column_names)
    has_targets = "target" in columns
    has_runner_up = {"runner_up", "runner_up_confidence"} <= columns
    return RunFacts(
        path=folder.path,
        config=folder.read_flat_config(),
        metrics=folder.read_metrics(),
        history=folder.read_history(),
        names=table.column("name").to_pylist(),
        assignments=table.column("cluster").to_numpy().astype(np.int64),
        confidence=table.column("confidence").to_numpy().astype(np.float64),
        targets=np.array(table.column("target").to_pylist()) if has_targets else None,
        skipped=_read_skipped(folder.skipped_file),
        runner_up=table.column("runner_up").to_numpy().astype(np.int64) if has_runner_up else None,
        runner_up_confidence=(
            table.column("runner_up_confidence").to_numpy().astype(np.float64)
            if has_runner_up
            else None
        ),
        cluster_names=folder.read_names(),
    )


def _read_skipped(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["name"], row["reason"]) for row in csv.DictReader(file)]
