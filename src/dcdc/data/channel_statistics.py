"""What the channels of a set look like, so that a network can normalise them."""

import numpy as np
from numpy.typing import NDArray

from dcdc.data.mapped import gather_spread


def channel_statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel of pixels in [0, 1], from at most 10,000 images."""
    n_pixels = 0
    total = squares = np.zeros(images.shape[-1], np.int64)
    for some in gather_spread(images, about=10_000, at_a_time=256):
        pixels = some.reshape(-1, images.shape[-1]).astype(np.int64)
        n_pixels += len(pixels)
        total, squares = total + pixels.sum(axis=0), squares + (pixels**2).sum(axis=0)
    mean = total / n_pixels / 255
    std = np.sqrt(np.maximum(squares / n_pixels / 255**2 - mean**2, 0))
    # A set of one flat colour has no deviation to divide by.
    return tuple(mean.round(6).tolist()), tuple(np.maximum(std, 1e-3).round(6).tolist())
