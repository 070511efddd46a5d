"""How many clusters there are: the number whose partition another half of the images predicts.

Tibshirani and Walther, Cluster validation by prediction strength, 2005. K-Means groups both halves
of the images, each by itself. Where there are K clusters, both find the same ones: images that one
half's centres put together, the other half's put together, too. With one cluster too many, each
half cuts another one in two.

Shapes: N images, D numbers each, K clusters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.cluster_head_initialisation import centres_of, nearest_centre

SURE = 0.8
"""What its authors take for well separated: the least share, over clusters, of pairs that both
halves put together."""
N_SPLITS = 4
N_INIT = 5


@dataclass(frozen=True)
class ClusterNumber:
    number: int
    strengths: Mapping[int, float]
    """By number of clusters, 1 at best."""
    is_settled: bool
    """Whether the images settle it; else it is the best of a flat curve."""
    runners_up: tuple[int, ...]
    """Other peaks of the curve, the highest first."""


def prediction_strengths(
    points: NDArray[np.floating],
    numbers: range,
    random: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[int, float]:
    """Of each of those numbers of clusters for `points`, N x D."""
    splits = [random.permutation(len(points)) for _ in range(N_SPLITS)]
    strengths = {}
    for n_done, number in enumerate(numbers):
        progress(n_done, len(numbers))
        seeds = random.integers(2**31, size=N_SPLITS)
        found = [
            strength
            for order, seed in zip(splits, seeds, strict=True)
            for strength in _of_halves(points, order, number, int(seed))
        ]
        strengths[number] = float(np.mean(found))
    progress(len(numbers), len(numbers))
    return strengths


def choose_number(strengths: Mapping[int, float], lowest: int) -> ClusterNumber:
    """Not below `lowest`: of the peaks that are sure the one with the most clusters, or the highest
    peak where none is. Fewer clusters than there are may be sure, too: of clusters that are alike,
    several make one. More never are."""
    peaks = [
        number
        for number, strength in strengths.items()
        if number >= lowest
        and strength >= strengths.get(number - 1, 0)
        and strength > strengths.get(number + 1, 0)
    ]
    by_height = sorted(peaks, key=strengths.__getitem__, reverse=True)
    sure = [number for number in peaks if strengths[number] >= SURE]
    chosen = max(sure) if sure else (by_height or [lowest])[0]
    others = tuple(number for number in by_height if number != chosen)
    return ClusterNumber(chosen, dict(strengths), bool(sure), others)


def share_of_pairs(own: NDArray[np.integer], other: NDArray[np.integer], number: int) -> float:
    """The least, over the clusters of `own` (N), of the share of their pairs that are together in
    `other` (N), too. A cluster of one image has no pair."""
    table = np.zeros((number, number))
    np.add.at(table, (own, other), 1)
    sizes = table.sum(axis=1)
    pairs = sizes * (sizes - 1)
    together = (table * (table - 1)).sum(axis=1)
    return float((together[pairs > 0] / pairs[pairs > 0]).min()) if pairs.any() else 0.0


def _of_halves(
    points: NDArray[np.floating], order: NDArray[np.integer], number: int, seed: int
) -> list[float]:
    halves = [points[rows] for rows in np.array_split(order, 2)]
    centres = [centres_of(half, number, seed, N_INIT) for half in halves]
    return [
        share_of_pairs(
            nearest_centre(half, centres[i]), nearest_centre(half, centres[1 - i]), number
        )
        for i, half in enumerate(halves)
    ]
