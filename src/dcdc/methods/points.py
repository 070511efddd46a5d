"""Images or feature vectors as points, in tens of numbers or in small groups where there are too
many of them.

Shapes: N images, D numbers each, p micro-clusters.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA

from dcdc.data import Data, VectorSet
from dcdc.metrics.directions import directions

_ROWS = 4096


def points_of(data: Data) -> NDArray[np.float32]:
    """N x D: pixels from 0 to 1; of feature vectors their directions, centred and of length 1.

    What a feature vector says is in its direction: its length grows with contrast and size, and
    the mean is what all images share. So K-Means on these is the field's on normalised features.
    """
    values = values_of(data)
    return directions(values) if isinstance(data, VectorSet) else values


def values_of(data: Data) -> NDArray[np.float32]:
    """N x D: pixels from 0 to 1, or feature vectors as they are."""
    if isinstance(data, VectorSet):
        return data.vectors.astype(np.float32)
    return data.images.reshape(data.n_images, -1).astype(np.float32) / np.float32(255)


def principal_components(
    pixels: NDArray[np.float32], n_components: int, seed: int
) -> NDArray[np.float32]:
    """N x D -> N x `n_components`, or `pixels` where they are no more; `pixels` are used up."""
    if n_components >= min(pixels.shape):
        return pixels
    pca = PCA(n_components, copy=False, svd_solver="randomized", random_state=seed)
    found: NDArray[np.float32] = pca.fit_transform(pixels)
    return found


def find_micro_clusters(
    points: NDArray[np.float32], n_micro_clusters: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Many small groups of near images, where comparing all pairs would take too long: centres,
    p x D, and the micro-cluster of every image, N."""
    k_means = MiniBatchKMeans(n_micro_clusters, batch_size=_ROWS, n_init=1, random_state=seed)
    labels = k_means.fit_predict(points)
    return k_means.cluster_centers_, labels.astype(np.int64)
