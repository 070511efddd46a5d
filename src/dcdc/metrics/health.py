"""What a partition says without targets: are all clusters in use, is it sure, are they apart?

Shapes: N images, D features, K clusters.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.errors import InputError

OUTLIER = -1
"""The cluster of an image that belongs to none, as scikit-learn writes it."""
_ONE_FOR_ALL = 0.9  # largest share above which the partition says next to nothing
_ROW_SUM_SLACK = 0.02  # bfloat16 rows do not sum to 1 exactly
MOST_COMPARED = 2000
_SEED = 0


@dataclass(frozen=True)
class PartitionHealth:
    """What the assignments of all images say of the partition."""

    sizes: tuple[int, ...]
    active_clusters: int
    largest_share: float
    entropy_of_mean: float  # nats; log K when the clusters are balanced
    mean_confidence: float

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sizes": list(self.sizes)}


def partition_health(
    probabilities: ArrayLike, assignments: NDArray[np.integer] | None = None
) -> PartitionHealth:
    """From assignments N x K, rows that sum to 1; an image belongs to its row's maximum or, where
    `assignments` are given, to that cluster, or to none below 0."""
    rows = _checked(probabilities)
    own = rows.argmax(axis=1) if assignments is None else assignments[assignments >= 0]
    sizes = np.bincount(own, minlength=rows.shape[1])
    mean = rows.mean(axis=0, dtype=np.float64)
    taken = mean[mean > 0]  # p log p is 0 at 0
    return PartitionHealth(
        sizes=tuple(sizes.tolist()),
        active_clusters=int((sizes > 0).sum()),
        largest_share=float(sizes.max() / len(rows)),
        entropy_of_mean=float(-(taken * np.log(taken)).sum()),
        mean_confidence=float(rows.max(axis=1).mean(dtype=np.float64)),
    )


def health_warnings(health: PartitionHealth) -> list[str]:
    """Sentences for a person; none for a healthy partition."""
    n_clusters = len(health.sizes)
    n_empty = n_clusters - health.active_clusters
    found = []
    if health.largest_share > _ONE_FOR_ALL:
        found.append(
            f"{health.largest_share:.0%} of the images fall into one cluster: use a larger batch, "
            "a lower learning rate or a higher weight of the balance term"
        )
    if n_empty:
        found.append(
            f"{n_empty} of {n_clusters} clusters {'is' if n_empty == 1 else 'are'} empty: train "
            "longer, use a larger batch or a higher weight of the balance term, or ask for fewer "
            "clusters"
        )
    return found


def collapse(sizes: Sequence[int]) -> str:
    """What is wrong with clusters of these sizes, in a few words; empty where all are in use."""
    n_used, largest = sum(size > 0 for size in sizes), max(sizes) / sum(sizes)
    if largest > _ONE_FOR_ALL:
        return f"collapsed: {largest:.0%} of the images in one cluster"
    used = f"{n_used} of {len(sizes)} clusters in use"
    if n_used == len(sizes):
        return ""
    return f"collapsed: {used}" if 2 * n_used <= len(sizes) else used


def label_free_score(features: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The mean silhouette by cosine, from -1 to 1, of at most 2,000 images (N x D), always the same
    ones; -1 where there is nothing to compare: one cluster, or as many as images."""
    if len(labels) > MOST_COMPARED:
        rows = np.random.default_rng(_SEED).choice(len(labels), MOST_COMPARED, replace=False)
        features, labels = features[rows], labels[rows]
    if not 2 <= len(np.unique(labels)) < len(labels):
        return -1.0
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(features, labels, metric="cosine"))


def _checked(probabilities: ArrayLike) -> NDArray[Any]:
    rows = np.asarray(probabilities)
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind != "f":
        raise InputError(
            f"probabilities has shape {rows.shape} and type {rows.dtype}: give floats, "
            "images x clusters"
        )
    sums = rows.sum(axis=1, dtype=np.float64)
    # NaN and infinity fail the comparisons too
    good = (np.abs(sums - 1) <= _ROW_SUM_SLACK) & (rows >= 0).all(axis=1)
    if not good.all():
        first = int(np.argmin(good))
        raise InputError(
            f"probabilities of image {first} sum to {sums[first]:g}, or are not from 0 to 1: "
            "give assignments after the softmax"
        )
    return rows
