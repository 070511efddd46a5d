"""How many clusters there are: the number whose partition another half of the images predicts.

Tibshirani and Walther, Cluster validation by prediction strength, 2005. K-Means groups both halves
of the images, each by itself. Where there are K clusters, both find the same ones: images that one
half's centres put together, the other half's put together, too. With one cluster too many, each
half cuts another one in two.

Where clusters are taken to be of equal size, those of K-Means are evened out: the halves then agree
more on the right number, and less on others (docs/log.md).

Shapes: N images, D numbers each, K clusters.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.k_means import balanced_centres, centres_of, nearest_centre, unit_rows
from dcdc.metrics.cluster_number import share_of_pairs
from dcdc.runtime.library_threads import library_threads

if TYPE_CHECKING:
    import torch

N_SPLITS = 4
N_INIT = 5


def prediction_strengths(
    points: NDArray[np.floating],
    numbers: range,
    random: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
    device: "torch.device | None" = None,
    *,
    even: bool = False,
) -> dict[int, float]:
    """Of each of those numbers of clusters for `points`, N x D. `even`: of clusters of equal size.
    K-Means is the GPU's, where `device` is one."""
    import sklearn.cluster  # noqa: F401  with threads of its own, which are then limited once

    splits = [random.permutation(len(points)) for _ in range(N_SPLITS)]
    strengths = {}
    with library_threads():
        for n_done, number in enumerate(numbers):
            progress(n_done, len(numbers))
            seeds = random.integers(2**31, size=N_SPLITS)
            found = [
                strength
                for order, seed in zip(splits, seeds, strict=True)
                for strength in _of_halves(points, order, number, int(seed), device, even)
            ]
            strengths[number] = float(np.mean(found))
    progress(len(numbers), len(numbers))
    return strengths


def _of_halves(
    points: NDArray[np.floating],
    order: NDArray[np.integer],
    number: int,
    seed: int,
    device: "torch.device | None",
    even: bool,
) -> list[float]:
    halves = [points[rows] for rows in np.array_split(order, 2)]
    centres = [centres_of(half, number, seed, N_INIT, device) for half in halves]
    if even:
        halves = [unit_rows(half) for half in halves]
        centres = [balanced_centres(*pair, device) for pair in zip(halves, centres, strict=True)]
    return [
        share_of_pairs(
            nearest_centre(half, centres[i]), nearest_centre(half, centres[1 - i]), number
        )
        for i, half in enumerate(halves)
    ]
