"""Clusters of a directed graph of neighbours, merged one pair after the other.

Zhang, Wang, Zhao and Tang, Graph degree linkage: Agglomerative clustering on a directed graph,
2012: two clusters are near where walks of two steps lead from one into the other and back. Yang,
Parikh and Batra, Joint unsupervised learning of deep representations and image clusters, 2016,
merge the pair that is nearest and also far nearer than other clusters are.

Photos leave scraps: groups of a few images that no other image has for a neighbour. Affinity merges
them last, so that nearly all images would be in one cluster, and the others be scraps.

Shapes: N images, D numbers of each, k neighbours.
"""

from collections import defaultdict
from heapq import heapify, heappop, heappush, nlargest

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from dcdc.engine.neighbours import nearest_neighbours

N_NEAR = 5
"""Clusters near to one, of which the nearest shall be far nearer than the others."""
MOST_OF_TINY = 16
"""Images of a cluster before any merge."""
Near = tuple[float, int]
"""Affinity and label of another cluster."""


def tiny_clusters(
    points: NDArray[np.float32], device: torch.device, most: int = MOST_OF_TINY
) -> NDArray[np.int64]:
    """N: every image (N x D) with its nearest neighbour, and so on, the nearest pairs first, unless
    more than `most` would be together: among photos a few are the nearest of hundreds."""
    nearest = nearest_neighbours(points, 1, device)[:, 0]
    rows = F.normalize(torch.from_numpy(points), dim=1)
    squared = (rows - rows[nearest]).square().sum(1).numpy()
    cluster_of = list(range(len(points)))
    members = {image: [image] for image in cluster_of}
    for image in np.argsort(squared, kind="stable").tolist():
        kept, gone = cluster_of[image], cluster_of[int(nearest[image])]
        if kept == gone or len(members[kept]) + len(members[gone]) > most:
            continue
        for moved in members[gone]:
            cluster_of[moved] = kept
        members[kept] += members.pop(gone)
    return np.unique(cluster_of, return_inverse=True)[1].astype(np.int64)


def neighbour_graph(
    points: NDArray[np.float32], k: int, device: torch.device
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each image's k neighbours by direction, N x k, and how near they are, N x k: exp of minus the
    squared distance, in units of its mean over all these pairs."""
    neighbours = nearest_neighbours(points, k, device)
    rows = F.normalize(torch.from_numpy(points), dim=1)
    squared = torch.stack([2 - 2 * (rows * rows[near]).sum(1) for near in neighbours.T], dim=1)
    squared = squared.double().clamp_min(0)
    weights = torch.exp(-squared / squared.mean().clamp_min(1e-12))
    return neighbours.numpy(), weights.numpy()


def merge_clusters(
    labels: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_clusters: int,
    *,
    to_the_end: bool = False,
) -> NDArray[np.int64]:
    """N, from 0 to `n_clusters` - 1: of `labels` (N), the same or fewer clusters. `to_the_end`: no
    merger follows, so no scrap may be left in a whole cluster's place."""
    merging = Merging(labels, neighbours, weights)
    while len(merging.members) > n_clusters:
        if to_the_end and merging.are_others_scraps(n_clusters):
            merging.join_smallest()
        else:
            merging.merge(*merging.next_pair())
    return np.unique(merging.labels, return_inverse=True)[1].astype(np.int64)


class Merging:
    """The clusters, and how near they are; what a merger changes is changed, and no more.

    `walks[a][b]` is the sum over images i of cluster b of what leads from a to i, times what leads
    from i to a. Divided by the square of a's size and added to that the other way, it says how near
    both are.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        neighbours: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> None:
        self.labels: list[int] = labels.tolist()
        self.members: dict[int, list[int]] = defaultdict(list)
        for image, label in enumerate(self.labels):
            self.members[label].append(image)
        self.to: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        """By cluster and image: what leads there."""
        self.back: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for image, (others, near) in enumerate(
            zip(neighbours.tolist(), weights.tolist(), strict=True)
        ):
            for other, weight in zip(others, near, strict=True):
                self.to[self.labels[image]][other] += weight
                self.back[self.labels[other]][image] += weight
        self.walks: dict[int, dict[int, float]] = {label: {} for label in self.members}
        for label in self.members:
            for image, weight in self.to[label].items():
                both = weight * self.back[label].get(image, 0.0)
                self._add_walks(label, self.labels[image], both)
        self.near: dict[int, list[Near]] = {}
        """Of clusters that have any: the nearest ones, the nearest first; fewer than N_NEAR where
        others are as near as `limit` at most, and were not looked at since."""
        self.limit: dict[int, Near | None] = {}
        """What is not among the nearest is no nearer; None: nothing else is there."""
        self.score: dict[int, float] = {}
        """At most so much, where the nearest are not all known."""
        self._best: list[tuple[float, int]] = []
        """Heap of scores with their signs turned; those of before are in it, too."""
        for label in self.members:
            self._look(label)
        self._n_neighbours = neighbours.shape[1]
        self._n_large = self._n_in_large = 0
        """Clusters of more images than neighbours, and the images in them."""
        for label in self.members:
            self._count_large(label, 1)
        alone = self.members.keys() - self.score.keys()
        self._alone = [(len(self.members[label]), label) for label in alone]
        heapify(self._alone)

    def affinity(self, first: int, second: int) -> float:
        there = self.walks[first].get(second, 0.0) / len(self.members[first]) ** 2
        return there + self.walks[second].get(first, 0.0) / len(self.members[second]) ** 2

    def next_pair(self) -> tuple[int, int]:
        """Clusters of which no walk comes back go first, the smallest of them, where some of their
        neighbours must be elsewhere: else outliers would be left over, and others merged that are
        not alike. Larger ones may be complete, and go last."""
        while self._alone and self._alone[0][0] <= self._n_neighbours:
            _, label = found = heappop(self._alone)
            if self._is_alone(*found):
                return label, self._led_to(label)
        while self._best:
            score, best = self._best[0]
            if self.score.get(best) != -score:
                heappop(self._best)
            elif self._is_known(best):
                return best, self.near[best][0][1]
            else:
                self._look(best)
        while True:
            _, label = found = heappop(self._alone)
            if self._is_alone(*found):
                return label, self._led_to(label)

    def are_others_scraps(self, n_clusters: int) -> bool:
        """Whether no more than so many clusters have more images than neighbours, and these most of
        all images."""
        return self._n_large <= n_clusters and 2 * self._n_in_large > len(self.labels)

    def join_smallest(self) -> None:
        """To where most leads from it."""
        smallest = min(self.members, key=lambda label: (len(self.members[label]), label))
        self.merge(smallest, self._led_to(smallest))

    def _is_alone(self, size: int, label: int) -> bool:
        """Still, and of that size."""
        is_same = label in self.members and len(self.members[label]) == size
        return is_same and not self.walks[label]

    def merge(self, first: int, second: int) -> None:
        kept, gone = sorted((first, second), key=lambda label: (-len(self.members[label]), label))
        to, back = self.to[kept], self.back[kept]
        for image in self.members[gone]:
            self.labels[image] = kept
        for other in list(self.walks[gone]):
            walked = self.walks[other].pop(gone)
            if other != kept:
                self._add_walks(other, kept, walked)
        del self.walks[gone]
        to_gone, back_gone = self.to.pop(gone), self.back.pop(gone)
        for image in to_gone.keys() | back_gone.keys():
            before = to.get(image, 0.0) * back.get(image, 0.0)
            to[image] += to_gone.get(image, 0.0)
            back[image] += back_gone.get(image, 0.0)
            self._add_walks(kept, self.labels[image], to[image] * back[image] - before)
        self._count_large(kept, -1)
        self._count_large(gone, -1)
        self.members[kept] += self.members.pop(gone)
        self._count_large(kept, 1)
        self._forget(gone)
        near = self._all_near(kept)
        self._take(kept, near)
        for affinity, label in near:
            self._look_again(label, (affinity, kept), gone)
        if not near:
            heappush(self._alone, (len(self.members[kept]), kept))

    def _count_large(self, label: int, sign: int) -> None:
        size = len(self.members[label])
        if size > self._n_neighbours:
            self._n_large += sign
            self._n_in_large += sign * size

    def _add_walks(self, start: int, end: int, amount: float) -> None:
        """Both clusters then know of each other, even if no walk leads the other way."""
        if start != end and amount > 0:
            self.walks[start][end] = self.walks[start].get(end, 0.0) + amount
            self.walks[end].setdefault(start, 0.0)

    def _all_near(self, label: int) -> list[Near]:
        """`affinity` to every other, in one go."""
        walks, members, size = self.walks, self.members, len(self.members[label]) ** 2
        return [
            (there / size + walks[other][label] / len(members[other]) ** 2, other)
            for other, there in walks[label].items()
        ]

    def _look(self, label: int) -> None:
        self._take(label, self._all_near(label))

    def _take(self, label: int, others: list[Near]) -> None:
        if others:
            near = nlargest(N_NEAR, others)
            self._keep(label, near, near[-1] if len(others) > len(near) else None)
        else:
            self._forget(label)

    def _look_again(self, label: int, now: Near, gone: int) -> None:
        """As `_look`, where only the affinity to one cluster is another, `now`, and `gone` is no
        more. Whether others are among the nearest instead is looked at when it matters: when no
        score is higher than this one may be."""
        near, limit, kept = self.near.get(label, []), self.limit.get(label), now[1]
        stay = [pair for pair in near if pair[1] != kept and pair[1] != gone]
        if limit is None or now > limit:
            stay.append(now)
            stay.sort(reverse=True)
            if len(stay) > N_NEAR:
                limit = stay.pop()
        if not stay:
            self._look(label)
        elif stay != near:
            self._keep(label, stay, limit)
        else:
            self.limit[label] = limit

    def _is_known(self, label: int) -> bool:
        return len(self.near[label]) == N_NEAR or self.limit[label] is None

    def _keep(self, label: int, near: list[Near], limit: Near | None) -> None:
        """The score: how near the nearest is, and how much nearer than the next ones."""
        self.near[label], self.limit[label] = near, limit
        # Clusters that are not there, or not known, are at an affinity of 0.
        next_ones = sum(affinity for affinity, _ in near[1:]) / (N_NEAR - 1)
        self.score[label] = 2 * near[0][0] - next_ones
        heappush(self._best, (-self.score[label], label))

    def _forget(self, label: int) -> None:
        self.near.pop(label, None)
        self.limit.pop(label, None)
        self.score.pop(label, None)

    def _led_to(self, label: int) -> int:
        """Where most leads from a cluster; else the smallest other one."""
        found: dict[int, float] = defaultdict(float)
        for image, weight in self.to[label].items():
            if self.labels[image] != label:
                found[self.labels[image]] += weight
        others = found or {
            other: -float(len(images)) for other, images in self.members.items() if other != label
        }
        return max(others, key=lambda other: (others[other], -other))
