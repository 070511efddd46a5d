"""How many clusters there are: the number whose partition another half of the images predicts.

Tibshirani and Walther, Cluster validation by prediction strength, 2005. K-Means groups both halves
of the images, each by itself. Where there are K clusters, both find the same ones: images that one
half's centres put together, the other half's put together, too. With one cluster too many, each
half cuts another one in two.

Shapes: N images, D numbers each, K clusters.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.k_means import best_centres, nearest_centre
from dcdc.metrics.cluster_number import share_of_pairs

N_SPLITS = 4
N_INIT = 5
"""Starts of K-Means: one that ends in a poor place would tell that the halves disagree."""


def prediction_strengths(
    points: NDArray[np.floating],
    numbers: range,
    random: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[int, float]:
    """Of each of those numbers of clusters for `points`, N x D."""
    found: dict[int, list[float]] = {number: [] for number in numbers}
    splits = [random.permutation(len(points)) for _ in range(N_SPLITS)]
    for n_done, order in enumerate(splits):
        halves = [points[rows] for rows in np.array_split(order, 2)]
        starts = [_starts(half, max(numbers), random) for half in halves]
        for place, number in enumerate(numbers):
            progress(n_done * len(numbers) + place, N_SPLITS * len(numbers))
            found[number] += _of_halves(halves, starts, number)
    progress(N_SPLITS * len(numbers), N_SPLITS * len(numbers))
    return {number: float(np.mean(each)) for number, each in found.items()}


def _starts(
    points: NDArray[np.floating], most: int, random: np.random.Generator
) -> list[NDArray[np.floating]]:
    """Centres drawn by k-means++, each far from those before it: the first K of them are a start
    for K clusters, whichever K is."""
    from sklearn.cluster import kmeans_plusplus

    seeds = random.integers(2**31, size=N_INIT)
    return [kmeans_plusplus(points, most, random_state=int(seed))[0] for seed in seeds]


def _of_halves(
    halves: Sequence[NDArray[np.floating]],
    starts: Sequence[Sequence[NDArray[np.floating]]],
    number: int,
) -> list[float]:
    centres = [
        best_centres(half, [start[:number] for start in drawn])
        for half, drawn in zip(halves, starts, strict=True)
    ]
    return [
        share_of_pairs(
            nearest_centre(half, centres[i]), nearest_centre(half, centres[1 - i]), number
        )
        for i, half in enumerate(halves)
    ]
