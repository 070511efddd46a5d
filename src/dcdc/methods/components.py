"""Principal components of pixels: neighbours are found in tens of numbers, not in thousands."""

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA


def principal_components(
    pixels: NDArray[np.float32], n_components: int, seed: int
) -> NDArray[np.float32]:
    """N x D -> N x `n_components`, or `pixels` where they are no more; `pixels` are used up."""
    if n_components >= min(pixels.shape):
        return pixels
    pca = PCA(n_components, copy=False, svd_solver="randomized", random_state=seed)
    found: NDArray[np.float32] = pca.fit_transform(pixels)
    return found
