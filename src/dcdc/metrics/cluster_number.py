"""Which number of clusters is taken, by prediction strengths (dcdc.engine.prediction_strength).

Shapes: N images.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SURE = 0.8
"""What its authors take for well separated: the least share, over clusters, of pairs that both
halves put together."""
STANDS_OUT = 0.2
"""Prominence from which a sure peak counts."""
AS_SURE = 0.05
"""How far below a sure peak the next number may be and still be taken."""
WEAK = 0.4
"""Below it, a fall of the curve says nothing. Cutting a cluster at random would leave .5."""
AHEAD = 3
"""Numbers after which a fall must not be made up for."""


@dataclass(frozen=True)
class ClusterNumber:
    number: int
    strengths: Mapping[int, float]
    """By number of clusters, 1 at best."""
    is_settled: bool
    """Whether the images settle it; else it is where a curve that is low falls most."""
    runners_up: tuple[int, ...]
    """Other peaks of the curve, the highest first."""


def choose_number(strengths: Mapping[int, float], lowest: int) -> ClusterNumber:
    """Not below `lowest`, and not the last one, which only shows whether the one before it is a
    peak. Of the peaks that are sure the one with the most clusters: of clusters that are alike,
    several make one, so fewer than there are may be sure, too. Two that are alike may also cost the
    right number a little of its strength, so one more cluster that is as sure is taken, and so on.

    Where no peak is sure, the number after which the curve falls most. Strengths fall as numbers
    grow, whatever the images show: the highest peak would favour few clusters. A fall counts for
    more after many clusters, where one that is cut is a smaller part of all.
    """
    last = max(strengths)
    peaks = [
        number
        for number, strength in strengths.items()
        if lowest <= number < last
        and strengths.get(number - 1, 0) <= strength > strengths[number + 1]
    ]
    # The lowest has nothing to stand out from: nearly all images fall into two or three kinds.
    in_range = {number: strength for number, strength in strengths.items() if number >= lowest}
    sure = [
        number
        for number in peaks
        if strengths[number] >= SURE and prominence(in_range, number) >= STANDS_OUT
    ]
    chosen = _last_as_sure(strengths, max(sure)) if sure else _before_the_fall(strengths, lowest)
    by_height = sorted(peaks, key=strengths.__getitem__, reverse=True)
    others = tuple(number for number in by_height if number != chosen)
    return ClusterNumber(chosen, dict(strengths), strengths[chosen] >= SURE, others)


def _last_as_sure(strengths: Mapping[int, float], peak: int) -> int:
    least, number = max(SURE, strengths[peak] - AS_SURE), peak
    while number + 1 < max(strengths) and strengths[number + 1] >= least:
        number += 1
    return number


def _before_the_fall(strengths: Mapping[int, float], lowest: int) -> int:
    def fall(number: int) -> float:
        """What the curve fell by just before counts half against it."""
        strength = strengths[number]
        after = (strengths.get(number + step, 0) for step in range(1, AHEAD + 1))
        before = max(0.0, strengths.get(number - 1, 0) - strength)
        return (strength - max(after) - before / 2) * math.sqrt(number)

    last = max(strengths)
    able = [n for n, strength in strengths.items() if lowest <= n < last and strength >= WEAK]
    return max(able, key=fall, default=lowest)


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
    `other` (N), too. A cluster of one image has no pair; one that is empty is not there, so there
    are fewer than `number`: 0."""
    table = np.zeros((number, number))
    np.add.at(table, (own, other), 1)
    sizes = table.sum(axis=1)
    if not sizes.all():
        return 0.0
    pairs = sizes * (sizes - 1)
    together = (table * (table - 1)).sum(axis=1)
    return float((together[pairs > 0] / pairs[pairs > 0]).min()) if pairs.any() else 0.0
