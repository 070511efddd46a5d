"""Where features lie, seen from their mean.

Shapes: N images, D numbers of each.
"""

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_ONCE = 4_096


def directions(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """N x D: from the mean to each, at length 1.

    How far an image is from the mean says how unusual it is, not what it shows. A million rows take
    gigabytes, so no second array of that size is made.
    """
    found: NDArray[np.float32] = features - features.mean(axis=0)
    for start in range(0, len(found), _ROWS_AT_ONCE):
        rows = found[start : start + _ROWS_AT_ONCE]
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return found


def lengths_from(middle: NDArray[np.float32], features: NDArray[np.float32]) -> NDArray[np.float32]:
    """N: how far each is from there."""
    found = np.empty(len(features), features.dtype)
    for start in range(0, len(features), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        found[rows] = np.linalg.norm(features[rows] - middle, axis=1)
    return found
