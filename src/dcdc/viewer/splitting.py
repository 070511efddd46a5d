"""Parts of a cluster that its features suggest, for a person to take or leave.

By Ward's hierarchy on directions within the cluster: one part more parts one of those before it,
so that a person who asks for more sees what changes. `benchmarks/split_parts.py` compares it.

Shapes: m images of the cluster with features, D features.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from dcdc.engine.k_means import nearest_centre, some_rows
from dcdc.metrics.directions import directions

FEWEST_IMAGES = 4
MOST_PARTS = 8
_MOST_LOOKED_AT = 2_000
_SUGGESTED = range(2, 7)


@dataclass(frozen=True, eq=False)
class Parts:
    members: list[NDArray[np.int64]]
    """Positions among the m, the largest part first."""
    n_suggested: int
    """How many they are most distinct in."""


def suggest_parts(features: NDArray[np.float32], n_parts: int = 0) -> Parts:
    """Of m x D; `n_parts` 0: as many as are suggested. Fewer come where images are alike."""
    points = directions(features)
    looked_at = some_rows(len(points), _MOST_LOOKED_AT, np.random.default_rng(0))
    some = points[looked_at]
    apart = np.sqrt(np.maximum(2 - 2 * (some @ some.T), 0))  # they are of length 1
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), "ward")
    numbers = [number for number in _SUGGESTED if number < len(some)]
    n_suggested = max(numbers, key=lambda number: silhouette(apart, _cut(tree, number)))
    found = _cut(tree, min(n_parts or n_suggested, len(some)))
    centres = np.stack([some[found == part].mean(axis=0) for part in np.unique(found)])
    own = nearest_centre(points, centres)
    members = [np.flatnonzero(own == part) for part in range(len(centres))]
    members = sorted((part for part in members if len(part)), key=len, reverse=True)
    return Parts(members, n_suggested)


def _cut(tree: NDArray[np.float64], n_parts: int) -> NDArray[np.int32]:
    return np.asarray(fcluster(tree, n_parts, "maxclust"), np.int32)


def silhouette(apart: NDArray[np.floating], parts: NDArray[np.integer]) -> float:
    """How much nearer images are to their own part than to the next one, from -1 to 1, by all their
    distances (m x m); Rousseeuw, 1987."""
    numbers = np.unique(parts)
    if len(numbers) < 2:
        return -1.0
    sums = np.stack([apart[:, parts == number].sum(axis=1) for number in numbers], axis=1)
    sizes = np.array([(parts == number).sum() for number in numbers])
    own = np.searchsorted(numbers, parts)
    each = np.arange(len(parts))
    inside = sums[each, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[each, own] = np.inf
    outside = means.min(axis=1)
    largest = np.maximum(inside, outside)
    values = np.divide(outside - inside, largest, out=np.zeros_like(largest), where=largest > 0)
    return float(np.where(sizes[own] > 1, values, 0.0).mean())
