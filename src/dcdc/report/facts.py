"""A finished run, read from its folder into plain values: images, clusters, the sample it left,
and whether neighbours agree: the figure beside the softmax share, which flatters.

Shapes: N images, n of the sample, v of its views, D features, K clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError
from dcdc.labels import are_folders
from dcdc.metrics.agreement import nearest_by_features, neighbour_agreement
from dcdc.metrics.health import OUTLIER
from dcdc.metrics.matching import pair_labels
from dcdc.metrics.provenance import of_vectors, origin
from dcdc.metrics.scores import cluster_purity
from dcdc.runtime.csv_text import unguarded
from dcdc.stored import files
from dcdc.stored.schema import Unfit

if TYPE_CHECKING:
    import pyarrow as pa

    from dcdc.data.vector_set import Data
    from dcdc.run_folder import RunFolder

OVERSTATED = 0.1
"""The softmax share is this much above the agreement of neighbours: then far fewer images are right
than it says, in every run that was measured (docs/results.md)."""


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
    number: Mapping[str, Any] | None = None  # how the images settled the number of clusters

    @property
    def certainty(self) -> NDArray[np.float64]:
        """How far the first choice leads, or its confidence where the second is not known; infinite
        of images that belong to none."""
        lead = self.confidence
        if self.runner_up_confidence is not None:
            lead = lead - self.runner_up_confidence
        return np.where(self.is_inside, lead, np.inf)

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """N: whether an image is in some cluster."""
        return np.not_equal(self.assignments, OUTLIER)

    @property
    def origin(self) -> str | None:
        """What marks the run's figures."""
        return origin(self.metrics)

    @property
    def outliers(self) -> NDArray[np.int64]:
        """Positions of images that belong to no cluster."""
        return np.flatnonzero(self.assignments == OUTLIER)

    @property
    def n_clusters(self) -> int:
        return int(self.metrics["n_clusters"])

    @property
    def backbone(self) -> Mapping[str, Any] | None:
        """Where the features come from, as dcdc.metrics.provenance reads it."""
        return self.metrics.get("backbone")

    @property
    def things(self) -> str:
        """What was grouped, in the plural."""
        return "vectors" if of_vectors(self.backbone) else "images"

    @property
    def partners(self) -> str:
        """What affinities are taken with."""
        stored = of_vectors(self.backbone) or self.config.get("network.frozen")
        return "nearest neighbours" if stored else "perturbed images"

    @property
    def source(self) -> str:
        """What the images came from; empty for a run that was handed arrays."""
        return str(self.config.get("data.source") or "")

    @cached_property
    def classes_are_folders(self) -> bool:
        """Whether what stands for classes are sub-folders, which may mean something else."""
        return self.targets is not None and are_folders(self.targets.tolist(), self.names)

    @property
    def class_word(self) -> str:
        return "sub-folder" if self.classes_are_folders else "class"

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

    def why_not_these_images(self, image_set: "Data") -> str | None:
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
    metrics = folder.read_metrics()
    _require_fit(folder, table, metrics)
    return RunFacts(
        path=folder.path,
        config=folder.read_flat_config(),
        metrics=metrics,
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
        number=folder.read_number(),
    )


def _require_fit(folder: "RunFolder", table: "pa.Table", metrics: Mapping[str, Any]) -> None:
    """Files of two runs in one folder would be a report of neither."""
    n_images, n_clusters = metrics["n_images"], metrics["n_clusters"]
    clusters = table["cluster"].to_numpy()
    problem = None
    if table.num_rows != n_images:
        problem = f"{table.num_rows} images, {folder.metrics_file.name} {n_images}"
    elif clusters.min() < OUTLIER or clusters.max() >= n_clusters:
        problem = f"clusters {clusters.min()} to {clusters.max()}, of {n_clusters} that there are"
    elif not np.isfinite(table["confidence"].to_numpy()).all():
        problem = "confidences that are no numbers"
    if problem:
        raise InputError(
            f"{folder.assignments_file} has {problem}: restore both from one copy, or train again"
        )


def _read_skipped(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    rows = files.SKIPPED.read(path)
    return [(unguarded(row["name"]), unguarded(row["reason"])) for row in rows]


@dataclass(frozen=True, eq=False)
class ClusterFacts:
    number: int
    members: NDArray[np.int64]  # positions of its images, the most confident first
    mean_confidence: float  # 0 for an empty cluster
    purity: float | None = None
    main_class: str | None = None
    agreement: float | None = None
    """Of its images' neighbours, the share that is in it, too; where features tell."""

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def n_of_main_class(self) -> int:
        return round((self.purity or 0.0) * self.size)


def describe_clusters(facts: RunFacts) -> list[ClusterFacts]:
    return clusters_of(facts.assignments, facts.confidence, facts.n_clusters, facts.targets)


def clusters_of(
    assignments: NDArray[np.int64],
    confidence: NDArray[np.floating[Any]],
    n_clusters: int,
    targets: NDArray[np.str_] | None = None,
) -> list[ClusterFacts]:
    """Every cluster, the empty ones too; largest first, equal sizes by number. Outliers are in
    none."""
    order = np.lexsort((-confidence, assignments))
    order = order[assignments[order] != OUTLIER]
    bounds = np.searchsorted(assignments[order], np.arange(1, n_clusters))
    purity: dict[int, float] = {}
    main_class: dict[int, str] = {}
    if targets is not None:
        purity = cluster_purity(targets[order], assignments[order])
        pairs = pair_labels(targets[order], assignments[order])
        winners = pairs.table.argmax(axis=0)
        main_class = {
            cluster: pairs.classes[row]
            for cluster, row in zip(pairs.clusters, winners, strict=True)
        }
    clusters = [
        ClusterFacts(
            number=number,
            members=members,
            mean_confidence=float(confidence[members].mean()) if len(members) else 0.0,
            purity=purity.get(number),
            main_class=main_class.get(number),
        )
        for number, members in enumerate(np.split(order, bounds))
    ]
    return sorted(clusters, key=lambda cluster: (-cluster.size, cluster.number))


@dataclass(frozen=True, eq=False)
class RunSample:
    rows: NDArray[np.int64]  # n, rising: positions in the set
    features: NDArray[np.float32]  # n x D
    assign: NDArray[np.float32]  # n x K
    view_rows: NDArray[np.int64]  # v, rising: positions in the set
    view_assign: NDArray[np.float32]  # v x K
    view_assign_perturbed: NDArray[np.float32]  # v x K, of one perturbed copy each


def read_sample(folder: "RunFolder") -> RunSample | None:
    """None where the run has none; a file that does not fit the run is refused."""
    metrics = folder.read_metrics()
    arrays = folder.read_sample(K=metrics["n_clusters"])
    if arrays is None:
        return None
    for name in ("rows", "view_rows"):
        rows, n_images = arrays[name], metrics["n_images"]
        if not len(rows) or rows[0] < 0 or rows[-1] >= n_images or (np.diff(rows) <= 0).any():
            error = Unfit(name, f"are not rising positions among {n_images} images")
            raise files.SAMPLE.damaged(folder.sample_file, error)
    kinds = {"i": np.int64, "f": np.float32}
    return RunSample(
        **{
            each.name: arrays[each.name].astype(kinds[arrays[each.name].dtype.kind])
            for each in fields(RunSample)
        }
    )


def with_agreement(
    facts: RunFacts, clusters: list[ClusterFacts], sample: RunSample
) -> tuple[float, list[ClusterFacts]]:
    """Of the sample's images with their neighbours in it, on the whole and by cluster."""
    own = facts.assignments[sample.rows]
    found = neighbour_agreement(nearest_by_features(sample.features), own)
    of_cluster = [found[own == cluster.number] for cluster in clusters]
    told = [
        replace(cluster, agreement=float(some.mean())) if len(some) else cluster
        for cluster, some in zip(clusters, of_cluster, strict=True)
    ]
    return float(found.mean()), told
