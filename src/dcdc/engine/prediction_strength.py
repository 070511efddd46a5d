"""How many clusters there are: the number whose partition another half of the images predicts.

Tibshirani and Walther, Cluster validation by prediction strength, 2005. K-Means groups both halves
of the images, each by itself. Where there are K clusters, both find the same ones: images that one
half's centres put together, the other half's put together, too. With one cluster too many, each
half cuts another one in two.

Shapes: N images, D numbers each, K clusters.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.k_means import centres_from, first_centres, nearest_centre
from dcdc.metrics.cluster_number import share_of_pairs
from dcdc.runtime.library_threads import library_threads

N_SPLITS = 4
N_INIT = 5


def prediction_strengths(
    points: NDArray[np.floating],
    numbers: range,
    random: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[int, float]:
    """Of each of those numbers of clusters for `points`, N x D."""
    strengths = {}
    with library_threads():  # once: it looks for every library that is loaded
        splits = [
            _halves(points, random.permutation(len(points)), numbers[-1], int(seed))
            for seed in random.integers(2**31, size=N_SPLITS)
        ]
        for n_done, number in enumerate(numbers):
            progress(n_done, len(numbers))
            found = [strength for halves in splits for strength in _of_halves(halves, number)]
            strengths[number] = float(np.mean(found))
    progress(len(numbers), len(numbers))
    return strengths


class _Half(NamedTuple):
    points: NDArray[np.floating]
    starts: NDArray[np.floating]
    """Of K-Means for every number: drawn anew for each, they would take most of the time."""


def _halves(
    points: NDArray[np.floating], order: NDArray[np.integer], most: int, seed: int
) -> list[_Half]:
    halves = (points[rows] for rows in np.array_split(order, 2))
    return [_Half(half, first_centres(half, most, seed, N_INIT)) for half in halves]


def _of_halves(halves: Sequence[_Half], number: int) -> list[float]:
    centres = [centres_from(half.points, half.starts[:, :number]) for half in halves]
    return [
        share_of_pairs(
            nearest_centre(half.points, centres[i]),
            nearest_centre(half.points, centres[1 - i]),
            number,
        )
        for i, half in enumerate(halves)
    ]
