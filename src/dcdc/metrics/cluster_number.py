"""Which number of clusters is taken, by prediction strengths (dcdc.engine.prediction_strength).

Shapes: N images.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SURE = 0.8
"""What its authors take for well separated: the least share, over clusters, of pairs that both
halves put together."""


@dataclass(frozen=True)
class ClusterNumber:
    number: int
    strengths: Mapping[int, float]
    """By number of clusters, 1 at best."""
    is_settled: bool
    """Whether the images settle it; else it is the best of a flat curve."""
    runners_up: tuple[int, ...]
    """Other peaks of the curve, the highest first."""


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
