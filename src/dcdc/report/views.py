"""The paper's two affinity matrices of a run: M over images and N over clusters.

Where a run is good, M has a block for every class and N is diagonal.

Shapes: v images of the sample's views, K clusters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.report.matching import matched_order
from dcdc.report.sample import RunSample

_EMPTY = 1e-8  # below this length a cluster counts as empty, as it does in training


@dataclass(frozen=True, eq=False)
class SortedAffinities:
    sample: NDArray[np.float32]  # v x v: M, original images against perturbed ones
    ideal_sample: NDArray[np.float32]  # 1 within a label
    rows: NDArray[np.int64]  # v: the image of each row of M, as a position in the set
    labels: list[Any]  # in the order of M's blocks
    block_sizes: list[int]  # images of each label
    classes: NDArray[np.float32]  # K x K: N, original clusters against perturbed ones
    ideal_classes: NDArray[np.float32]  # the identity
    clusters: list[int]  # K: the cluster of each row of N


def sorted_affinities(sample: RunSample, targets_or_assignments: ArrayLike) -> SortedAffinities:
    """By a label for every image of the set: its class, or its cluster where classes are unknown.

    M is sorted by label, and by cluster within a label. N has the clusters in the order of the
    classes matched to them; those without a class come last.
    """
    labels = np.asarray(targets_or_assignments)
    n_clusters = sample.assign.shape[1]
    order = matched_order(labels[sample.rows], sample.assign.argmax(axis=1))
    clusters = [*order.clusters, *sorted(set(range(n_clusters)) - set(order.clusters))]
    place_of_cluster = np.argsort(clusters)
    place_of_label = {label: place for place, label in enumerate(order.classes)}
    of_views = labels[sample.view_rows].tolist()
    # A view may have a label that the sample lacks, if someone else made the file.
    for label in of_views:
        place_of_label.setdefault(label, len(place_of_label))
    places = np.array([place_of_label[label] for label in of_views])
    by_label = np.lexsort((place_of_cluster[sample.view_assign.argmax(axis=1)], places))
    assign = sample.view_assign[by_label][:, clusters]
    assign_perturbed = sample.view_assign_perturbed[by_label][:, clusters]
    places = places[by_label]
    shown, sizes = np.unique(places, return_counts=True)
    names = list(place_of_label)
    return SortedAffinities(
        sample=_cosine_of_rows(assign, assign_perturbed),
        ideal_sample=(places[:, None] == places).astype(np.float32),
        rows=sample.view_rows[by_label],
        labels=[names[place] for place in shown],
        block_sizes=sizes.tolist(),
        classes=_cosine_of_rows(assign.T, assign_perturbed.T),
        ideal_classes=np.eye(n_clusters, dtype=np.float32),
        clusters=[int(cluster) for cluster in clusters],
    )


def _cosine_of_rows(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    return _of_unit_length(left) @ _of_unit_length(right).T


def _of_unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, _EMPTY), np.float32)
