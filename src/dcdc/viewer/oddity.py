"""Which images are like no other, and which are nearly the same, by features.

Of very many images the features are read a few at a time, and what is kept of them is small.
Shapes: N images of the run, n of the sample, D features, P directions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.out_of_distribution import OutOfDistributionScore, out_of_distribution_score_of
from dcdc.engine.taught import linked
from dcdc.viewer.likeness import MOST_DIRECTIONS, Likeness, grouped, main_axes, unit

Blocks = Callable[[], Iterator[NDArray[np.floating]]]
"""N x D, a few rows at a time."""
_NEARER = 0.25
"""Near-duplicates: nearer than this share of the usual distance to the nearest image."""
_ROWS_AT_ONCE, _OTHERS_AT_ONCE = 512, 8192
_FIRST = 32
"""Directions that rule most pairs out: what is far apart in some of them is so in all."""
_ROUNDING = 1e-3
"""Of squares of distances, of which products leave it; who may be near is looked at again."""
_MOST_PARTNERS = 16
"""Of an image among some thousand others: of ten thousand equal ones all are linked all the same,
one by one."""
_LOOKED_AT = 500
"""Images whose distance to the nearest tells the usual one, of very many."""


@dataclass(frozen=True, eq=False)
class Oddity:
    scores: NDArray[np.float32] | None
    """n: out-of-distribution scores, each by the other images; None where they cannot be told."""
    near_duplicates: list[NDArray[np.int64]]
    """Positions among the n, a list for each group."""


def look_for_oddity(features: NDArray[np.floating]) -> Oddity:
    """Of n x D features."""
    known = out_of_distribution_score_of(features)
    if known is None:
        return Oddity(None, [])
    scores = known.own_scores()
    reach = _NEARER * float(np.median(scores)) * known.ordinary_distance
    return Oddity(scores, groups_within(reach, known.training))


def look_at_all(
    n_images: int,
    sample_rows: NDArray[np.int64],
    sample: NDArray[np.floating],
    blocks: Blocks,
    between: Callable[[], None] = lambda: None,
) -> tuple[Likeness, Oddity]:
    """Of N images, by what a sample of them (n x D) tells of directions and of ordinary distances;
    half precision is enough for that. `between` is called now and then, and may raise."""
    axes = main_axes(unit(sample))
    known = out_of_distribution_score_of(sample)
    directions = np.empty((n_images, axes.shape[1]), np.float16)
    n_axes = 0 if known is None else min(MOST_DIRECTIONS, known.directions.shape[1])
    places = np.empty((n_images, n_axes), np.float16)
    scores = np.empty(n_images, np.float32)
    start = 0
    for block in blocks():
        between()
        rows = slice(start, start + len(block))
        directions[rows] = unit(unit(block) @ axes)
        if known is not None:
            places[rows] = _placed(known, block)
            scores[rows] = known.score(block)
        start += len(block)
    likeness = Likeness(np.arange(n_images), directions)
    if known is None:
        return likeness, Oddity(None, [])
    scores[sample_rows] = known.own_scores()  # who is in the sample is its own nearest there
    reach = _NEARER * float(np.median(_nearest_of_some(places)))
    return likeness, Oddity(scores, groups_within(reach, places, between))


def _placed(known: OutOfDistributionScore, block: NDArray[np.floating]) -> NDArray[np.float32]:
    axes = known.directions[:, :MOST_DIRECTIONS]
    return np.asarray((block.astype(np.float32) - known.mean) @ axes, np.float32)


def _nearest_of_some(places: NDArray[np.floating]) -> NDArray[np.float32]:
    some = np.unique(np.linspace(0, len(places) - 1, _LOOKED_AT).astype(int))
    found = np.full(len(some), np.inf, np.float32)
    for start in range(0, len(places), _OTHERS_AT_ONCE):
        others = places[start : start + _OTHERS_AT_ONCE].astype(np.float32)
        squares = _squares(places[some].astype(np.float32), others)
        own = np.flatnonzero((some >= start) & (some < start + len(others)))
        squares[own, some[own] - start] = np.inf
        np.minimum(found, squares.min(axis=1), out=found)
    return np.sqrt(np.maximum(found, 0))


def groups_within(
    reach: float, places: NDArray[np.floating], between: Callable[[], None] = lambda: None
) -> list[NDArray[np.int64]]:
    """Of rows that lie nearer to one another than `reach`."""
    first = places[:, :_FIRST].astype(np.float32)
    pairs = [np.empty((2, 0), np.int64)]
    for start in range(0, len(places), _ROWS_AT_ONCE):
        between()
        some = first[start : start + _ROWS_AT_ONCE]
        for from_ in range(start, len(places), _OTHERS_AT_ONCE):
            squares = _squares(some, first[from_ : from_ + _OTHERS_AT_ONCE])
            one, other = np.nonzero(squares < reach**2 * (1 + _ROUNDING) + _ROUNDING)
            one, other = one + start, other + from_
            one, other = one[one < other], other[one < other]
            few = np.arange(len(one)) - np.searchsorted(one, one) < _MOST_PARTNERS
            one, other = one[few], other[few]
            away = places[one].astype(np.float32) - places[other]
            near = np.square(away).sum(axis=1) < reach**2
            pairs.append(np.stack([one[near], other[near]]))
    return grouped(linked(np.concatenate(pairs, axis=1).T, len(places)))


def _squares(some: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of their distances, in place: there may be many."""
    squares = some @ others.T
    squares *= -2
    squares += np.square(others).sum(axis=1)
    squares += np.square(some).sum(axis=1)[:, None]
    return squares
