"""Which clusters join first as their number falls.

Average linkage: two clusters are as alike as their images are on average, by the cosine of the
images' features. The two that are most alike join, and so on until one is left.

Shapes: N images, D numbers of each, K clusters.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Join:
    first: int
    second: int
    """Clusters by their numbers; from K on, what an earlier join made: K of the first one."""
    alike: float
    """The mean cosine between images of the one and of the other."""
    n_images: int
    """Of both."""


@dataclass(frozen=True)
class Hierarchy:
    n_clusters: int
    """K. Those without images take no part."""
    joins: tuple[Join, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every cluster and every join but the last joins once, after it was made."""
        sides = [(join.first, join.second) for join in self.joins]
        in_time = all(max(pair) < self.n_clusters + place for place, pair in enumerate(sides))
        joined = [side for pair in sides for side in pair]
        made = range(self.n_clusters, self.n_clusters + len(self.joins) - 1)
        return in_time and len(joined) == len(set(joined)) and set(made) <= set(joined)

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Of each join, by the number of what it makes: its clusters, those that are alike side by
        side."""
        found: dict[int, list[int]] = {}
        for made, join in enumerate(self.joins, start=self.n_clusters):
            sides = [found.get(side, [side]) for side in (join.first, join.second)]
            found[made] = [cluster for side in sides for cluster in side]
        return found

    @property
    def order(self) -> list[int]:
        """The clusters, so that no two joins cross."""
        if not self.joins:
            return []
        return self.members[self.n_clusters + len(self.joins) - 1]

    def groups(self, n_groups: int) -> list[list[int]]:
        """Which clusters are one where there are so many."""
        n_joined = max(0, len(self.joins) + 1 - n_groups)
        found = {cluster: [cluster] for cluster in self.order}
        for made, join in enumerate(self.joins[:n_joined], start=self.n_clusters):
            found[made] = found.pop(join.first) + found.pop(join.second)
        return list(found.values())


class Groups:
    """Images in groups, of which the most alike two can be joined."""

    def __init__(self, points: NDArray[np.floating], labels: NDArray[np.integer], n: int) -> None:
        """`points`, N x D, are of length 1; `labels`, N, from 0 to n - 1."""
        self.sizes = np.bincount(labels, minlength=n).astype(np.float64)
        sums = np.zeros((n, points.shape[1]))
        np.add.at(sums, labels, points)
        self.means = sums / np.maximum(self.sizes, 1)[:, None]
        # The mean cosine of all pairs is the product of the means.
        self.alike = self.means @ self.means.T
        np.fill_diagonal(self.alike, -np.inf)
        absent = self.sizes == 0
        self.alike[absent], self.alike[:, absent] = -np.inf, -np.inf

    def most_alike(self) -> tuple[int, int]:
        first, second = np.unravel_index(self.alike.argmax(), self.alike.shape)
        return int(min(first, second)), int(max(first, second))

    def join(self, first: int, second: int) -> None:
        """The second one into the first."""
        sizes, means = self.sizes, self.means
        total = sizes[first] + sizes[second]
        means[first] = (sizes[first] * means[first] + sizes[second] * means[second]) / total
        sizes[first], sizes[second] = total, 0
        left = sizes > 0
        left[first] = False
        near = np.where(left, means @ means[first], -np.inf)
        self.alike[first], self.alike[:, first] = near, near
        self.alike[second], self.alike[:, second] = -np.inf, -np.inf


def join_clusters(
    points: NDArray[np.floating], assignments: NDArray[np.integer], n_clusters: int
) -> Hierarchy:
    """Of images by their `points` (N x D, of length 1) and clusters (N); those of no cluster, below
    0, take no part."""
    inside = assignments >= 0
    groups = Groups(points[inside], assignments[inside], n_clusters)
    number = list(range(n_clusters))
    joins: list[Join] = []
    for made in range(n_clusters, n_clusters + int((groups.sizes > 0).sum()) - 1):
        first, second = groups.most_alike()
        alike = float(groups.alike[first, second])
        groups.join(first, second)
        joins.append(Join(number[first], number[second], alike, int(groups.sizes[first])))
        number[first] = made
    return Hierarchy(n_clusters, tuple(joins))


def joined_labels(
    points: NDArray[np.floating], labels: NDArray[np.integer], n_groups: int, fewest: int
) -> NDArray[np.int64]:
    """N, from 0 to `n_groups` - 1: of many small groups (`labels`, N) the most alike joined, until
    so many have at least `fewest` images. What is left beside these goes to the nearest."""
    n = int(labels.max()) + 1
    groups = Groups(points, labels, n)
    home = np.arange(n)
    while (groups.sizes > 0).sum() > n_groups and (groups.sizes >= fewest).sum() > n_groups:
        first, second = groups.most_alike()
        groups.join(first, second)
        home[home == second] = first
    kept = np.argsort(-groups.sizes, kind="stable")[:n_groups]
    nearest = (groups.means @ groups.means[kept].T).argmax(axis=1)
    place = dict(zip(kept.tolist(), range(n_groups), strict=True))
    of_group = np.array([place.get(group, int(nearest[group])) for group in range(n)])
    return np.asarray(of_group[home[labels]], np.int64)
