"""The answers of a finished run as people left them: corrected, and with the names they gave.

Shapes: N images of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dcdc.engine.edits import OUTSIDE, corrected
from dcdc.labels import are_folders
from dcdc.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class CorrectedRun:
    table: pa.Table
    """As the run answered."""
    clusters: NDArray[np.int32]
    """N; OUTSIDE for images that belong to none."""
    n_clusters: int
    cluster_names: dict[int, str]

    @property
    def names(self) -> list[str]:
        found: list[str] = self.table["name"].to_pylist()
        return found

    def name_of(self, cluster: int) -> str | None:
        """What to call it; None for what belongs to no cluster."""
        if cluster == OUTSIDE:
            return None
        return self.cluster_names.get(cluster) or f"cluster {cluster}"

    @cached_property
    def rows(self) -> pa.Table:
        """For people and their programs: what holds now, and beside it what the run said."""
        own = self.table["cluster"].to_numpy()
        is_outside = self.clusters == OUTSIDE
        names = [self.cluster_names.get(cluster) for cluster in self.clusters.tolist()]
        columns = {
            "name": self.table["name"],
            "cluster": pa.array(self.clusters, pa.int32(), mask=is_outside),
            "cluster_name": pa.array(names, pa.string()),
            "corrected": pa.array(self.clusters != own),
            "answered_cluster": pa.array(own, pa.int32()),
            "confidence": self.table["confidence"],
        }
        for name in ("runner_up", "runner_up_confidence"):
            if name in self.table.column_names:
                columns[name] = self.table[name]
        if "target" in self.table.column_names:
            targets: Sequence[str] = self.table["target"].to_pylist()
            title = "sub_folder" if are_folders(targets, self.names) else "target"
            columns[title] = self.table["target"]
        return pa.table(columns)


def read_corrected(folder: RunFolder) -> CorrectedRun:
    answers = folder.read_answers()
    found = corrected(folder.read_edits(answers), answers)
    new = {n: name for n, name in found.names.items() if n >= answers.n_clusters and name}
    names = folder.read_names() | new
    return CorrectedRun(folder.read_assignments(), found.clusters, found.n_clusters, names)
