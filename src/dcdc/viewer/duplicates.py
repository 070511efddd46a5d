"""Groups of images that are the same, or nearly so, and the one of each that stands for all.

Shapes: N images of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Groups = Sequence[NDArray[np.int64]]
"""Rows, a list for each group."""


@dataclass(frozen=True, eq=False)
class Duplicates:
    n_images: int
    copies: Groups = ()
    """With the same content."""
    alike: Groups = ()
    """Nearly the same, by features."""

    @cached_property
    def near(self) -> list[NDArray[np.int64]]:
        """Groups of images that are nearly the same; those of exact copies alone are left out."""
        first = np.arange(self.n_images)
        for group in self.copies:
            first[group] = group[0]
        return [group for group in self.alike if len(np.unique(first[group])) > 1]

    @cached_property
    def group(self) -> NDArray[np.int32]:
        """N: equal for images of one group."""
        if not self.copies and not self.alike:
            return np.arange(self.n_images, dtype=np.int32)
        pairs = [
            np.stack([np.full(len(group) - 1, group[0]), group[1:]])
            for group in (*self.copies, *self.alike)
        ]
        one, other = np.concatenate(pairs, axis=1)
        graph = coo_array((np.ones(len(one), bool), (one, other)), shape=(self.n_images,) * 2)
        return np.asarray(connected_components(graph, directed=False)[1], np.int32)

    def once(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first of each group, in the order of `rows`."""
        _, first = np.unique(self.group[rows], return_index=True)
        return rows[np.sort(first)]

    def counted(self, clusters: NDArray[np.integer]) -> NDArray[np.int32]:
        """N: how many of an image's group are in its cluster, itself among them."""
        key = self.group.astype(np.int64) * (int(clusters.max(initial=0)) + 2) + clusters + 1
        _, label, sizes = np.unique(key, return_inverse=True, return_counts=True)
        return sizes[label].astype(np.int32)

    def with_all(self, rows: Sequence[int], clusters: NDArray[np.integer]) -> list[int]:
        """Those and the others of their groups that are in the same clusters."""
        wanted = set(zip(self.group[rows].tolist(), clusters[rows].tolist(), strict=True))
        maybe = np.flatnonzero(np.isin(self.group, self.group[rows]))
        pairs = zip(self.group[maybe].tolist(), clusters[maybe].tolist(), strict=True)
        return [row for row, pair in zip(maybe.tolist(), pairs, strict=True) if pair in wanted]
