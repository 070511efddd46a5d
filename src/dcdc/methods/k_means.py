"""K-Means on raw pixels, the floor of the paper's table; of feature vectors, on their directions.

Lloyd, Least squares quantization in PCM, 1982; seeded as in Arthur and Vassilvitskii,
k-means++: the advantages of careful seeding, 2007. Images are points; each joins its nearest
centre, each centre moves to the mean of its images, until nothing changes. Best of 10 starts.

Points of many numbers start in few directions, where the starts cost little: those that vary most
(Ding and He, K-means clustering via principal component analysis, 2004). The centres of the best
start are then moved in all numbers until nothing changes.

Shapes: N images, D numbers each, K clusters.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from dcdc.data import Data
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import points_of

N_DIRECTIONS = 64


def cluster(
    image_set: Data, n_clusters: int, seed: int, _context: Context, *, n_init: int = 10
) -> Clustering:
    points = points_of(image_set)
    found = best_of_starts(points, n_clusters, n_init, seed)
    return Clustering(found.labels_.astype(np.int64))


def best_of_starts(points: NDArray[np.float32], n_clusters: int, n_init: int, seed: int) -> KMeans:
    """Fitted to `points`, N x D."""
    if min(points.shape) <= N_DIRECTIONS:
        return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points)
    pca = PCA(N_DIRECTIONS, svd_solver="randomized", random_state=seed)
    started = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(pca.fit_transform(points))
    centres = pca.inverse_transform(started.cluster_centers_).astype(points.dtype)
    return KMeans(n_clusters, init=centres, n_init=1, random_state=seed).fit(points)
