"""Out-of-distribution score: how far an image is from the training images, by features alone.

Directions in which the training features vary are brought to one scale, those of little variance
too: images that the clusters do not tell apart differ there. An image's distance to its nearest
training image is then compared with the distances that training images have among themselves.
Shapes: n training images, N others, D features, P directions.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

FEWEST_IMAGES = 20
"""Of fewer training images no 99th percentile can be told."""
ORDINARY = 0.99
"""The share of training images that count as like the others."""
_SMALLEST_SHARE = 1e-4  # of all variance: below it is what float16 left
_IMAGES_PER_DIRECTION = 5  # fewer do not tell a direction's scale
_ROWS_AT_ONCE = 256

_Precision = TypeVar("_Precision", np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class OutOfDistributionScore:
    mean: NDArray[np.float32]
    """D"""
    directions: NDArray[np.float32]
    """D x P"""
    training: NDArray[np.float32]
    """n x P"""
    ordinary_distance: float

    def score(self, features: NDArray[np.floating]) -> NDArray[np.float32]:
        """N: distances to the nearest training image; above 1, an image is out of distribution."""
        placed = _placed(features, self.mean, self.directions)
        return (_nearest(placed, self.training) / self.ordinary_distance).astype(np.float32)

    def own_scores(self) -> NDArray[np.float32]:
        """n: of the training images themselves, each by all others."""
        own = _nearest(self.training, self.training, leave_own_out=True)
        return (own / self.ordinary_distance).astype(np.float32)


def out_of_distribution_score_of(features: NDArray[np.floating]) -> OutOfDistributionScore | None:
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
    scaled = directions[:, kept] / np.sqrt(variances[kept])
    own = (exact - mean) @ scaled
    ordinary = float(np.quantile(_nearest(own, own, leave_own_out=True), ORDINARY))
    if ordinary <= np.quantile(_blur(features, mean, scaled), ORDINARY):  # copies of a few images
        return None
    coarse_mean, coarse = mean.astype(np.float32), scaled.astype(np.float32)
    return OutOfDistributionScore(
        coarse_mean, coarse, _placed(features, coarse_mean, coarse), ordinary
    )


def _placed(
    features: NDArray[np.floating], mean: NDArray[np.float32], directions: NDArray[np.float32]
) -> NDArray[np.float32]:
    return np.asarray((features.astype(np.float32) - mean) @ directions, np.float32)


def _blur(
    features: NDArray[np.floating], mean: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """n: how far from an image a copy may be whose every feature has another last digit.

    As a network answers in another batch, and scores are of float32 at best.
    """
    kept = max(np.finfo(features.dtype), np.finfo(np.float32), key=lambda kind: kind.eps)
    sizes = np.maximum(np.abs(features.astype(np.float64)), np.maximum(np.abs(mean), kept.tiny))
    return np.asarray(kept.eps * np.sqrt(np.square(sizes) @ np.square(directions).sum(axis=1)))


def _nearest(
    rows: NDArray[_Precision], others: NDArray[_Precision], *, leave_own_out: bool = False
) -> NDArray[_Precision]:
    """The distance of each row to the nearest of the others."""
    lengths = np.square(others).sum(axis=1)
    found = np.empty(len(rows), rows.dtype)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        # Less the row's own length. Of a small distance products leave their rounding: they find
        # the nearest row, and do not measure how near it is.
        squares = some @ others.T
        squares *= -2  # in place: there may be 5,000 others
        squares += lengths
        if leave_own_out:
            own = np.arange(len(some))
            squares[own, start + own] = np.inf
        away = some - others[squares.argmin(axis=1)]
        found[start : start + len(some)] = np.sqrt(np.square(away).sum(axis=1))
    return found
