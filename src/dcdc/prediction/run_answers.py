"""The answers of a finished run as people left them: corrected, and with the names they gave;
and the image files they are of, found again in its source.

Shapes: N images of the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dcdc.data.load_data import file_of, find_again, places_of
from dcdc.engine.edits import OUTSIDE, corrected
from dcdc.errors import InputError
from dcdc.labels import are_folders
from dcdc.prediction.sorting import Files, NamedFiles
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


def run_files(config: Mapping[str, Any], names: Sequence[str]) -> Files:
    """Of the images called `names`; without files where the source has none. `config` by
    `section.key`."""
    source = str(config.get("data.source") or "")
    if not source:
        return NamedFiles("what the run was given in Python", names)
    found = find_again(source, config.get("data.target"), config.get("data.column"))
    at = file_of(found)
    if at is None:
        return NamedFiles(source, names)
    places = places_of(found.names, names)

    def file(row: int) -> Path:
        if places[row] < 0:
            raise InputError(f"the image {names[row]} is no longer in {source}: put it there again")
        return at(int(places[row]))

    return NamedFiles(source, names, file)
