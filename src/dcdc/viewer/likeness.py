"""Which images are alike, and which are like no other, by the features that a run has kept.

Shapes: N images of the run, n of them with features, D features, K clusters.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dcdc.engine.out_of_distribution import out_of_distribution_score_of

MOST = 20_000
"""Images between which every pair is looked at."""
_NEARER = 0.25
"""Near-duplicates: nearer than this share of the usual distance to the nearest image."""
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class Likeness:
    rows: NDArray[np.int64]
    """n, rising: positions among the run's images."""
    directions: NDArray[np.float32]
    """n x D, of length 1."""

    @classmethod
    def of(cls, rows: NDArray[np.int64], features: NDArray[np.floating]) -> "Likeness":
        wide = features.astype(np.float32)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return cls(rows, np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0))

    def nearest(self, row: int, k: int) -> list[tuple[int, float]]:
        """Rows and their cosines, the nearest first; none for an image without features."""
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            return []
        cosines = self.directions @ self.directions[at]
        cosines[at] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
        return [(int(self.rows[each]), float(cosines[each])) for each in best]

    def from_centres(self, clusters: NDArray[np.integer], n_images: int) -> NDArray[np.float32]:
        """N: one minus the cosine with the centre of the image's own cluster; NaN if not known."""
        found = np.full(n_images, np.nan, np.float32)
        own = clusters[self.rows]
        for cluster in np.unique(own[own >= 0]):
            members = np.flatnonzero(own == cluster)
            centre = self.directions[members].mean(axis=0)
            length = float(np.linalg.norm(centre)) or 1.0
            found[self.rows[members]] = 1 - self.directions[members] @ (centre / length)
        return found


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
    return Oddity(scores, _groups_within(reach, known.training))


def _groups_within(reach: float, places: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Of rows that lie nearer to one another than `reach`."""
    lengths = np.square(places).sum(axis=1)
    pairs = []
    for start in range(0, len(places), _ROWS_AT_ONCE):
        some = places[start : start + _ROWS_AT_ONCE]
        squares = some @ places.T
        squares *= -2
        squares += lengths
        squares += lengths[start : start + len(some), None]
        one, other = np.nonzero(squares < reach**2)
        pairs.append(np.stack([one + start, other])[:, one + start < other])
    one, other = np.concatenate(pairs, axis=1)
    graph = coo_array((np.ones(len(one), bool), (one, other)), shape=(len(places),) * 2)
    _, label = connected_components(graph, directed=False)
    return grouped(label)


def grouped(labels: NDArray[np.integer]) -> list[NDArray[np.int64]]:
    """Positions of equal labels, where there are several; the largest groups first."""
    order = np.argsort(labels, kind="stable").astype(np.int64)
    bounds = np.flatnonzero(np.diff(labels[order])) + 1
    groups = [group for group in np.split(order, bounds) if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))
