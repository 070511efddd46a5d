"""Two labellings of the same images, of any integer or string type, as codes."""

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
