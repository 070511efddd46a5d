"""Clusters as joined small groups: of any size, and without what belongs to none of them.

K-Means cuts a large cluster before it finds a small one, and gives every image a place. So it looks
for many more groups than clusters, and the nearest join until as many are large as there are
clusters.

Shapes: N images, D numbers of each, K clusters.
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.k_means import centres_of, nearest_centre
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.metrics.hierarchy import joined_labels

GROUPS = 6
"""Small groups for each cluster, of at least as many images."""
SMALLEST = 0.6
"""Of an even share: a group that has less is no cluster, where clusters are of equal size."""
SMALLEST_OF_UNEQUAL = 0.1
"""The same where they need not be."""
STARTS = 3
"""Of K-Means."""


def joined_groups(
    points: NDArray[np.floating], n_clusters: int, sizes: Sizes, seed: int, n_init: int = STARTS
) -> NDArray[np.int64]:
    """N, from 0 to K - 1: the cluster of each image by its `points` (N x D); OUTLIER where its
    group has joined none that is large enough.

    Twice: by distances, and then by directions from the middle of the clusters that were found.
    Directions tell clusters apart better, but not from the mean of all images, which lies in the
    largest cluster.
    """
    fewest = smallest_cluster(len(points), n_clusters, sizes)
    found = np.zeros(len(points), np.int64)
    for _ in range(2):
        groups = small_groups(points, n_clusters, seed, n_init)
        found = joined_labels(points, groups, n_clusters, fewest)
        points = _directions(points, found)
    return found


def small_groups(
    points: NDArray[np.floating], n_clusters: int, seed: int, n_init: int = STARTS
) -> NDArray[np.int64]:
    """N: many more groups than clusters, by K-Means."""
    n_groups = max(n_clusters, min(GROUPS * n_clusters, len(points) // GROUPS))
    return np.asarray(nearest_centre(points, centres_of(points, n_groups, seed, n_init)))


def smallest_cluster(n_images: int, n_clusters: int, sizes: Sizes) -> int:
    """How many images a group has at least that counts as a cluster."""
    share = SMALLEST if sizes == EQUAL else SMALLEST_OF_UNEQUAL
    return int(share * n_images / n_clusters)


def _directions(points: NDArray[np.floating], labels: NDArray[np.int64]) -> NDArray[np.floating]:
    """From the middle of the clusters, at length 1."""
    means = [points[labels == cluster].mean(axis=0) for cluster in np.unique(labels[labels >= 0])]
    away = points - np.mean(means, axis=0)
    unit: NDArray[np.floating] = away / np.linalg.norm(away, axis=1, keepdims=True).clip(min=1e-12)
    return unit
