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
    """Whether the images settle it; else it is what stands out most from a curve that is low."""
    runners_up: tuple[int, ...]
    """Other peaks of the curve, the highest first."""


def choose_number(strengths: Mapping[int, float], lowest: int) -> ClusterNumber:
    """Not below `lowest`: of the peaks that are sure the one with the most clusters, or the most
    prominent peak where none is. Fewer clusters than there are may be sure, too: of clusters that
    are alike, several make one. More never are. Strengths fall as numbers grow, whatever the images
    show, so of peaks that are not sure the highest would favour few clusters."""
    peaks = [
        number
        for number, strength in strengths.items()
        if number >= lowest
        and strength >= strengths.get(number - 1, 0)
        and strength > strengths.get(number + 1, 0)
    ]
    by_height = sorted(peaks, key=strengths.__getitem__, reverse=True)
    sure = [number for number in peaks if strengths[number] >= SURE]
    prominent = max(by_height, key=lambda number: prominence(strengths, number), default=lowest)
    chosen = max(sure) if sure else prominent
    others = tuple(number for number in by_height if number != chosen)
    return ClusterNumber(chosen, dict(strengths), bool(sure), others)


def prominence(strengths: Mapping[int, float], number: int) -> float:
    """How far the curve falls from the strength of `number`, on both sides, before it rises above
    it or ends."""
    return strengths[number] - max(
        _lowest_before_higher(strengths, number, step) for step in (-1, 1)
    )


def _lowest_before_higher(strengths: Mapping[int, float], number: int, step: int) -> float:
    lowest, other = strengths[number], number + step
    while strengths.get(other, np.inf) <= strengths[number]:
        lowest = min(lowest, strengths[other])
        other += step
    return lowest


def share_of_pairs(own: NDArray[np.integer], other: NDArray[np.integer], number: int) -> float:
    """The least, over the clusters of `own` (N), of the share of their pairs that are together in
    `other` (N), too. A cluster of one image has no pair."""
    table = np.zeros((number, number))
    np.add.at(table, (own, other), 1)
    sizes = table.sum(axis=1)
    pairs = sizes * (sizes - 1)
    together = (table * (table - 1)).sum(axis=1)
    return float((together[pairs > 0] / pairs[pairs > 0]).min()) if pairs.any() else 0.0
