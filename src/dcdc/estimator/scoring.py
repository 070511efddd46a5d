"""A score that needs no labels, for the choice among settings.

Shapes: N images, D features.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import silhouette_score

MOST_IMAGES = 2000
_SEED = 0


def label_free_score(features: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The mean silhouette by cosine, from -1 to 1, of at most 2,000 images drawn once and for all;
    -1 where there is nothing to compare: one cluster, or as many as images."""
    if len(labels) > MOST_IMAGES:
        rows = np.random.default_rng(_SEED).choice(len(labels), MOST_IMAGES, replace=False)
        features, labels = features[rows], labels[rows]
    if not 2 <= len(np.unique(labels)) < len(labels):
        return -1.0
    return float(silhouette_score(features, labels, metric="cosine"))
