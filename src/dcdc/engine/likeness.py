"""How unlike its training images a model finds others: by features alone, without labels.

Directions in which the training features vary are brought to one scale, those of little variance
too: images that the clusters do not tell apart differ there. An image's distance to its nearest
training image is then compared with the distances that training images have among themselves.
Shapes: n training images, N others, D features, P directions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_IMAGES = 20
"""Of fewer training images no 99th percentile can be told."""
ORDINARY = 0.99
"""The share of training images that count as like the others."""
_SMALLEST_SHARE = 1e-4  # of all variance: below it lies what float16 left
_IMAGES_PER_DIRECTION = 5  # fewer do not tell a direction's scale
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Likeness:
    mean: NDArray[np.float32]
    """D"""
    directions: NDArray[np.float32]
    """D x P"""
    training: NDArray[np.float32]
    """n x P"""
    ordinary_distance: float

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float32]:
        """N: distances to the nearest training image; above 1, an image is unlike them."""
        placed = _placed(features, self.mean, self.directions)
        return (_nearest(placed, self.training) / self.ordinary_distance).astype(np.float32)


def likeness_to(features: NDArray[np.floating]) -> Likeness | None:
    """To images of these features, n x D; None where they are too few or all the same."""
    n_images = len(features)
    if n_images < FEWEST_IMAGES:
        return None
    exact = features.astype(np.float64)
    mean = exact.mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(exact, rowvar=False, bias=True))
    largest_first = np.argsort(variances)[::-1][: n_images // _IMAGES_PER_DIRECTION]
    kept = largest_first[variances[largest_first] > _SMALLEST_SHARE * variances.sum()]
    if not len(kept):
        return None
    scaled = (directions[:, kept] / np.sqrt(variances[kept])).astype(np.float32)
    training = _placed(features, mean.astype(np.float32), scaled)
    ordinary = float(np.quantile(_nearest(training, training, leave_own_out=True), ORDINARY))
    if ordinary <= 0:  # copies of a few images
        return None
    return Likeness(mean.astype(np.float32), scaled, training, ordinary)


def _placed(
    features: NDArray[np.floating], mean: NDArray[np.float32], directions: NDArray[np.float32]
) -> NDArray[np.float32]:
    return np.asarray((features.astype(np.float32) - mean) @ directions, np.float32)


def _nearest(
    rows: NDArray[np.float32], others: NDArray[np.float32], *, leave_own_out: bool = False
) -> NDArray[np.float32]:
    """The distance of each row to the nearest of the others."""
    lengths = np.square(others).sum(axis=1)
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        squares = np.square(some).sum(axis=1)[:, None] + lengths - 2 * (some @ others.T)
        if leave_own_out:
            own = np.arange(len(some))
            squares[own, start + own] = np.inf
        found[start : start + len(some)] = np.sqrt(np.maximum(squares.min(axis=1), 0))
    return found
