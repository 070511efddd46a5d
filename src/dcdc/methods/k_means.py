"""K-Means on raw pixels, the floor of the paper's table; of feature vectors, on their directions.

Lloyd, Least squares quantization in PCM, 1982; seeded as in Arthur and Vassilvitskii,
k-means++: the advantages of careful seeding, 2007. Images are points; each joins its nearest
centre, each centre moves to the mean of its images, until nothing changes. Best of 10 starts.
"""

import numpy as np
from sklearn.cluster import KMeans

from dcdc.data import Data
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import points_of


def cluster(
    image_set: Data, n_clusters: int, seed: int, _context: Context, *, n_init: int = 10
) -> Clustering:
    k_means = KMeans(n_clusters, n_init=n_init, random_state=seed)
    return Clustering(k_means.fit_predict(points_of(image_set)).astype(np.int64))
