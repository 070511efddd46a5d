"""Whether images that are alike are in one cluster: what can be told of a partition without labels.

Shapes: n images, D features, k neighbours.
"""

import numpy as np
from numpy.typing import NDArray

N_NEIGHBOURS = 20
_ROWS_AT_ONCE = 512


def nearest_by_features(features: NDArray[np.floating], k: int = N_NEIGHBOURS) -> NDArray[np.int64]:
    """n x k, by cosine, in no order; fewer where there are fewer others."""
    rows = features.astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    k = min(k, len(rows) - 1)
    found = np.empty((len(rows), k), np.int64)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        cosines = rows[start : start + _ROWS_AT_ONCE] @ rows.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        found[start : start + len(cosines)] = np.argpartition(-cosines, max(0, k - 1), axis=1)[
            :, :k
        ]
    return found


def neighbour_agreement(
    nearest: NDArray[np.int64], clusters: NDArray[np.integer]
) -> NDArray[np.float32]:
    """n: the share of each image's neighbours (n x k) that are in its own cluster."""
    if not nearest.shape[1]:
        return np.ones(len(nearest), np.float32)
    same = clusters[nearest] == clusters[:, None]
    return np.asarray(same.mean(axis=1), np.float32)
