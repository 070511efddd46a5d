"""K-Means on raw pixels, the floor of the paper's table.

Lloyd, Least squares quantization in PCM, 1982; seeded as in Arthur and Vassilvitskii,
k-means++: the advantages of careful seeding, 2007. Images are points; each joins its nearest
centre, each centre moves to the mean of its images, until nothing changes. Best of 10 starts.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dcdc.errors import InputError


def k_means_on_pixels(
    images_uint8: NDArray[np.uint8], n_clusters: int, seed: int
) -> NDArray[np.int64]:
    """Images (N x H x W x C) -> N assignments from 0 to n_clusters - 1."""
    n_images = len(images_uint8)
    if not 1 <= n_clusters <= n_images:
        raise InputError(f"{n_clusters} clusters for {n_images} images: give 1 to {n_images}")
    pixels = images_uint8.reshape(n_images, -1).astype(np.float32) / 255
    k_means = KMeans(n_clusters, n_init=10, random_state=seed)
    return np.asarray(k_means.fit_predict(pixels), dtype=np.int64)
