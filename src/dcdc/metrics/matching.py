"""Which cluster stands for which class: the one-to-one pairing that shares most images.

Kuhn, The Hungarian method for the assignment problem, 1955. Any number of clusters, any number
of classes; the surplus on either side stays unmatched. Labels are of any integer or string type.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.errors import InputError
from dcdc.labels import label_array


@dataclass(frozen=True, eq=False)
class PairedLabels:
    """Sorted distinct labels, and per image the position of its own among them."""

    classes: list[Any]
    class_codes: NDArray[np.int64]
    clusters: list[Any]
    cluster_codes: NDArray[np.int64]

    @property
    def table(self) -> NDArray[np.int64]:
        """classes x clusters: how many images share both."""
        shape = (len(self.classes), len(self.clusters))
        cells = self.class_codes * shape[1] + self.cluster_codes
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def pair_labels(targets: ArrayLike, assignments: ArrayLike) -> PairedLabels:
    target_array = label_array(targets, "targets")
    assignment_array = label_array(assignments, "assignments")
    if len(target_array) != len(assignment_array):
        raise InputError(
            f"there are {len(target_array)} targets but {len(assignment_array)} assignments: "
            "give one of each per image"
        )
    classes, class_codes = np.unique(target_array, return_inverse=True)
    clusters, cluster_codes = np.unique(assignment_array, return_inverse=True)
    return PairedLabels(classes.tolist(), class_codes, clusters.tolist(), cluster_codes)


def contingency_table(targets: ArrayLike, assignments: ArrayLike) -> NDArray[np.int64]:
    """classes x clusters, both sorted: how many images share both."""
    return pair_labels(targets, assignments).table


def match_clusters(targets: ArrayLike, assignments: ArrayLike) -> dict[Any, Any]:
    """cluster -> class, as they came in; unmatched clusters are absent."""
    pairs = pair_labels(targets, assignments)
    rows, columns = matched_cells(pairs.table)
    return {
        pairs.clusters[column]: pairs.classes[row]
        for row, column in sorted(zip(rows, columns, strict=True), key=lambda cell: cell[1])
    }


def matched_cells(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the cells that the matching picks from a contingency table."""
    # here: it takes a third of a second, and nothing is matched before the first training step
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(table, maximize=True)
    return rows, columns
