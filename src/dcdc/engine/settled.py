"""Answers that keep to what people said: labels, and which images belong together or apart.

Shapes: N images, m of them spoken of, K clusters.
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.assignment import UNSAID
from dcdc.engine.edits import OUTSIDE
from dcdc.engine.taught import Pairs, Taught, linked


def spoken_of(taught: Taught) -> NDArray[np.int64]:
    """m rising rows: of labelled images, and of pairs. Images that belong to none are left out."""
    pairs = _within(taught, np.concatenate([taught.together, taught.apart]))
    return np.union1d(taught.labelled, pairs)


def settled(
    scores: NDArray[np.floating], rows: NDArray[np.int64], taught: Taught
) -> NDArray[np.int32]:
    """m: the cluster of each image in `rows`, as `spoken_of` has them.

    A labelled image has its label. Images that belong together share the cluster with the highest
    sum of their `scores` (m x K logarithms of shares). Who belongs apart from others takes the best
    that none of these has: who is surest first. Where none is left, the best of all.
    """
    place = np.full(len(taught.clusters), -1)
    place[rows] = np.arange(len(rows))
    together = place[_within(taught, taught.together)]
    apart = place[_within(taught, taught.apart)]
    _, unit = np.unique(linked(together, len(rows)), return_inverse=True)
    sums = np.zeros((unit.max(initial=-1) + 1, scores.shape[1]))
    np.add.at(sums, unit, scores)
    label = np.full(len(sums), UNSAID, np.int32)
    is_label = taught.placed[rows]
    label[unit[is_label]] = taught.clusters[rows[is_label]]
    foes = _foes(unit[apart])
    two = np.sort(sums, axis=1)[:, -2:]
    for each in np.argsort(two[:, 0] - two[:, 1], kind="stable"):
        if label[each] == UNSAID:
            taken = [label[foe] for foe in foes.get(int(each), ()) if label[foe] != UNSAID]
            free = np.setdiff1d(np.arange(sums.shape[1]), taken)
            among = free if len(free) else np.arange(sums.shape[1])
            label[each] = among[sums[each, among].argmax()]
    return label[unit]


def said(probabilities: NDArray[np.floating], taught: Taught) -> NDArray[np.int32]:
    """N: the clusters that people settled, OUTSIDE where they said so, UNSAID where nothing."""
    found = np.full(len(probabilities), UNSAID, np.int32)
    rows = spoken_of(taught)
    shares = probabilities[rows].astype(np.float64)
    found[rows] = settled(np.log(shares.clip(np.finfo(np.float64).tiny)), rows, taught)
    found[taught.outside] = OUTSIDE
    return found


def _within(taught: Taught, pairs: Pairs) -> Pairs:
    """Those of two images that are both in some cluster."""
    found: Pairs = pairs[(taught.clusters[pairs] != OUTSIDE).all(axis=1)]
    return found


def _foes(pairs: Pairs) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for one, other in pairs:
        found.setdefault(int(one), set()).add(int(other))
        found.setdefault(int(other), set()).add(int(one))
    return found
