"""Where features lie, seen from their mean.

Shapes: N images, D numbers of each.
"""

import numpy as np
from numpy.typing import NDArray


def directions(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """N x D: from the mean to each, at length 1.

    How far an image is from the mean says how unusual it is, not what it shows.
    """
    centred = features - features.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    found: NDArray[np.float32] = centred / np.maximum(lengths, 1e-12)
    return found
