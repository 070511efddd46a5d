"""Many small heaps of near images, for what cannot bear to look at every image with every other.

Shapes: N images, D numbers each, p heaps.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

_ROWS = 4096


def find_heaps(
    points: NDArray[np.float32], n_heaps: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Centres, p x D, and the heap of every image, N."""
    k_means = MiniBatchKMeans(n_heaps, batch_size=_ROWS, n_init=1, random_state=seed).fit(points)
    return k_means.cluster_centers_, k_means.labels_.astype(np.int64)
