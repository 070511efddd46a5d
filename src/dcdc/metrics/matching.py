"""Which cluster stands for which class: the one-to-one pairing that shares most images.

Kuhn, The Hungarian method for the assignment problem, 1955. Any number of clusters, any number
of classes; the surplus on either side stays unmatched.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from dcdc.metrics.labels import pair_labels


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
    rows, columns = linear_sum_assignment(table, maximize=True)
    return rows, columns
