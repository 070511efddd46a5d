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
    group has joined none that is large enough."""
    n_groups = max(n_clusters, min(GROUPS * n_clusters, len(points) // GROUPS))
    groups = nearest_centre(points, centres_of(points, n_groups, seed, n_init))
    share = SMALLEST if sizes == EQUAL else SMALLEST_OF_UNEQUAL
    return joined_labels(points, groups, n_clusters, int(share * len(points) / n_clusters))
