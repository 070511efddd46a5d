"""Which clusters join first as their number falls.

Average linkage: two clusters are as far apart as their images are on average, by the squared
distance of their features. The nearest two join, and so on until one is left.

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
    distance: float
    """The mean squared distance between an image of the one and one of the other, over that of any
    two images."""
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
        """Of each join, by the number of what it makes: its clusters, near ones side by side."""
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

    def smallest_branches(self, sizes: NDArray[np.integer], fewest: int) -> list[list[int]]:
        """The clusters of each branch that has at least so many images, and of which no part has.
        `sizes`, K: the images of each cluster."""
        large = {cluster for cluster in range(self.n_clusters) if sizes[cluster] >= fewest}
        found = [[cluster] for cluster in sorted(large)]
        for made, join in enumerate(self.joins, start=self.n_clusters):
            if join.n_images < fewest:
                continue
            if not {join.first, join.second} & large:
                found.append(self.members[made])
            large.add(made)
        return found


class Groups:
    """Images in groups, of which the nearest two can be joined."""

    def __init__(self, points: NDArray[np.floating], labels: NDArray[np.integer], n: int) -> None:
        """`points`, N x D, in groups by `labels`, N, from 0 to n - 1."""
        exact = points.astype(np.float64)
        self.sizes = np.bincount(labels, minlength=n).astype(np.float64)
        counts = np.maximum(self.sizes, 1)
        sums, squares = np.zeros((n, points.shape[1])), np.zeros(n)
        np.add.at(sums, labels, exact)
        np.add.at(squares, labels, np.square(exact).sum(axis=1))
        self.means, self.squares = sums / counts[:, None], squares / counts
        self.distances = np.stack([self._from(group) for group in range(n)])

    def _from(self, group: int) -> NDArray[np.float64]:
        """Mean squared distances between images of this group and of each other: those of their
        lengths and means are enough to tell."""
        products = self.means @ self.means[group]
        found = self.squares + self.squares[group] - 2 * products
        others = self.sizes > 0
        others[group] = False
        return np.where(others & (self.sizes[group] > 0), found, np.inf)

    def nearest(self) -> tuple[int, int]:
        """The first of them the lower number."""
        first, second = np.unravel_index(self.distances.argmin(), self.distances.shape)
        return int(min(first, second)), int(max(first, second))

    def join(self, first: int, second: int) -> None:
        """The second one into the first."""
        sizes, pair = self.sizes, [first, second]
        self.means[first] = np.average(self.means[pair], axis=0, weights=sizes[pair])
        self.squares[first] = np.average(self.squares[pair], weights=sizes[pair])
        sizes[first], sizes[second] = sizes[pair].sum(), 0
        for group in pair:
            self.distances[group] = self.distances[:, group] = self._from(group)


def join_clusters(
    points: NDArray[np.floating], assignments: NDArray[np.integer], n_clusters: int
) -> Hierarchy:
    """Of images by their features (N x D) and clusters (N); those of no cluster, below 0, take no
    part."""
    inside = assignments >= 0
    points = points[inside] - points[inside].mean(axis=0)  # so that nothing is lost in squares
    groups = Groups(points, assignments[inside], n_clusters)
    by_chance = 2 * float(np.square(points.astype(np.float64)).sum(axis=1).mean()) or 1.0
    number = list(range(n_clusters))
    joins: list[Join] = []
    for made in range(n_clusters, n_clusters + int((groups.sizes > 0).sum()) - 1):
        first, second = groups.nearest()
        distance = float(groups.distances[first, second]) / by_chance
        groups.join(first, second)
        joins.append(Join(number[first], number[second], distance, int(groups.sizes[first])))
        number[first] = made
    return Hierarchy(n_clusters, tuple(joins))


def joined_labels(
    points: NDArray[np.floating], labels: NDArray[np.integer], n_groups: int, fewest: int
) -> NDArray[np.int64]:
    """N, from 0 to `n_groups` - 1: of many small groups (`labels`, N) the nearest joined, until so
    many have at least `fewest` images; -1 for what is left beside these."""
    n = max(int(labels.max()) + 1, n_groups)
    groups = Groups(points - points.mean(axis=0), labels, n)
    home = np.arange(n)
    while (groups.sizes > 0).sum() > n_groups and not _are_large(groups, n_groups, fewest):
        first, second = groups.nearest()
        groups.join(first, second)
        home[home == second] = first
    kept = np.argsort(-groups.sizes, kind="stable")[:n_groups]
    place = np.full(n, -1)
    place[kept] = np.arange(n_groups)
    if (groups.sizes >= fewest).any():  # of few images none may be large enough
        place[groups.sizes < fewest] = -1
    return np.asarray(place[home[labels]], np.int64)


def _are_large(groups: Groups, n_groups: int, fewest: int) -> bool:
    """Whether so many groups, and no more, are large enough."""
    return int((groups.sizes >= max(fewest, 1)).sum()) == n_groups
