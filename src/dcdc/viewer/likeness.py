"""Which images are alike, by the features that a run has kept; groups of those that are the same,
or nearly so, and the one of each that stands for all.

Shapes: N images of the run, n of them with features, D features, P directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.taught import linked

_ROWS_AT_ONCE = 8192
MOST_DIRECTIONS = 128
"""Of the features of very many images: enough to tell who is near, in a tenth of the memory."""
Groups = Sequence[NDArray[np.int64]]
"""Rows, a list for each group."""


@dataclass(frozen=True, eq=False)
class Likeness:
    rows: NDArray[np.int64]
    """n, rising: positions among the run's images."""
    directions: NDArray[np.floating]
    """n x D, or n x P, of length 1; of very many images in half precision."""

    @classmethod
    def of(cls, rows: NDArray[np.int64], features: NDArray[np.floating]) -> "Likeness":
        return cls(rows, unit(features))

    @property
    def n_images(self) -> int:
        return len(self.rows)

    def of_rows(self, rows: NDArray[np.integer]) -> "Likeness":
        """Of those among `rows` whose features are known."""
        known = np.isin(self.rows, rows)
        return Likeness(self.rows[known], self.directions[known])

    def nearest(self, row: int, k: int) -> list[tuple[int, float]]:
        """Rows and their cosines, the nearest first; none for an image without features."""
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            return []
        cosines = self._cosines(self.directions[at].astype(np.float32))
        cosines[at] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(k, len(cosines) - 1)]
        return [(int(self.rows[each]), float(cosines[each])) for each in best]

    def _cosines(self, direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """n, a few rows at a time: half precision is widened first."""
        found = np.empty(len(self.directions), np.float32)
        for start in range(0, len(found), _ROWS_AT_ONCE):
            some = self.directions[start : start + _ROWS_AT_ONCE].astype(np.float32, copy=False)
            found[start : start + len(some)] = some @ direction
        return found

    def from_centres(self, clusters: NDArray[np.integer], n_images: int) -> NDArray[np.float32]:
        """N: one minus the cosine with the centre of the image's own cluster; NaN if not known."""
        found = np.full(n_images, np.nan, np.float32)
        own = clusters[self.rows]
        for cluster in np.unique(own[own >= 0]):
            members = np.flatnonzero(own == cluster)
            own_directions = self.directions[members].astype(np.float32)
            centre = own_directions.mean(axis=0)
            length = float(np.linalg.norm(centre)) or 1.0
            found[self.rows[members]] = 1 - own_directions @ (centre / length)
        return found


def unit(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Of length 1, where they have one."""
    wide = features.astype(np.float32)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    found: NDArray[np.float32] = np.zeros_like(wide)
    np.divide(wide, lengths, out=found, where=lengths > 0)
    return found


def main_axes(directions: NDArray[np.float32]) -> NDArray[np.float32]:
    """D x P: those along which most of their lengths lie."""
    _, axes = np.linalg.eigh(directions.T.astype(np.float64) @ directions)
    return np.ascontiguousarray(axes[:, ::-1][:, :MOST_DIRECTIONS], np.float32)


def grouped(labels: NDArray[np.integer]) -> list[NDArray[np.int64]]:
    """Positions of equal labels, where there are several; the largest groups first."""
    order = np.argsort(labels, kind="stable").astype(np.int64)
    bounds = np.flatnonzero(np.diff(labels[order])) + 1
    groups = [group for group in np.split(order, bounds) if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))


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
        return linked(np.concatenate(pairs, axis=1).T, self.n_images).astype(np.int32)

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
