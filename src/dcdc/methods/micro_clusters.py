"""Micro-clusters: many small groups of near images, where comparing all pairs would take too long.

Shapes: N images, D numbers each, p micro-clusters.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

_ROWS = 4096


def find_micro_clusters(
    points: NDArray[np.float32], n_micro_clusters: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Centres, p x D, and the micro-cluster of every image, N."""
    k_means = MiniBatchKMeans(n_micro_clusters, batch_size=_ROWS, n_init=1, random_state=seed)
    labels = k_means.fit_predict(points)
    return k_means.cluster_centers_, labels.astype(np.int64)
