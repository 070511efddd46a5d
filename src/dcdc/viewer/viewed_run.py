"""A run as the viewer has it: what is known of every image, and the orders to show them in.

Shapes: N images of the run, n of them with features.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError
from dcdc.report.facts import RunFacts, RunSample
from dcdc.report.map_layout import on_grid
from dcdc.viewer.corrections import Corrections
from dcdc.viewer.kept_features import KeptFeatures
from dcdc.viewer.likeness import Duplicates, Likeness
from dcdc.viewer.originals import Originals
from dcdc.viewer.splitting import FEWEST_IMAGES, suggest_parts
from dcdc.viewer.survey import UNKNOWN_DATE, Survey

ORDERS = ("random", "confidence", "centre", "odd", "folder", "name", "date")
N_NEAREST = 24


@dataclass(frozen=True)
class Wish:
    """Which images, in which order."""

    cluster: int | None = None
    """None: all; OUTSIDE: those that belong to none."""
    order: str = "random"
    backwards: bool = False
    find: str = ""
    """A part of their names."""
    once: bool = True
    """Of duplicates the first alone."""


class ViewedRun:
    def __init__(
        self,
        facts: RunFacts,
        corrections: Corrections,
        originals: Originals | None,
        notes: Sequence[str] = (),
        *,
        sample: RunSample | None = None,
        features: KeptFeatures | None = None,
        layouts: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """`notes`: what cannot be shown, and why. `layouts`: of the sample."""
        self.facts, self.originals, self._notes = facts, originals, list(notes)
        self.n_images = len(facts.names)
        self.corrections = corrections
        self._sample, self.layouts = sample, layouts
        self.survey = Survey(self.n_images, originals, features or KeptFeatures())
        self.take_corrections()

    def take_corrections(self) -> None:
        """Clusters and names as the edits leave them."""
        found = self.corrections.corrected()
        self.clusters, self.n_clusters = found.clusters, found.n_clusters
        self.names = found.names
        self.__dict__.pop("_of_clusters", None)

    @property
    def notes(self) -> list[str]:
        return [*self._notes, *([] if self.survey.note is None else [self.survey.note])]

    # What is known of each image

    @cached_property
    def random_rank(self) -> NDArray[np.int64]:
        """The same for one run at every visit."""
        return np.random.default_rng(int(self.facts.metrics["seed"])).permutation(self.n_images)

    @cached_property
    def _folder_rank(self) -> NDArray[np.int64]:
        return _rank([name.rpartition("/")[::2] for name in self.facts.names])

    @cached_property
    def _name_rank(self) -> NDArray[np.int64]:
        return _rank([name.rpartition("/")[2] for name in self.facts.names])

    @cached_property
    def _lowered(self) -> list[str]:
        return [name.lower() for name in self.facts.names]

    @cached_property
    def _of_clusters(self) -> dict[str, tuple[object, Any]]:
        """What depends on clusters and on what the survey knows, until one of the two changes."""
        return {}

    def _kept(self, name: str, source: object, make: Callable[[], Any]) -> Any:
        known = self._of_clusters.get(name)
        if known is None or known[0] is not source:
            known = (source, make())
            self._of_clusters[name] = known
        return known[1]

    @property
    def likeness(self) -> Likeness | None:
        known = self.survey.by_features
        return None if known is None else known.likeness

    @property
    def from_centre(self) -> NDArray[np.float32]:
        """N; NaN where it is not known."""
        likeness = self.likeness
        if likeness is None:
            return np.full(self.n_images, np.nan, np.float32)
        found: NDArray[np.float32] = self._kept(
            "centre", likeness, lambda: likeness.from_centres(self.clusters, self.n_images)
        )
        return found

    @property
    def odd(self) -> NDArray[np.float32] | None:
        """N: out-of-distribution scores, NaN where not known; None while they are worked out, and
        where there are none."""
        known = self.survey.by_features
        if known is None or known.oddity is None or known.oddity.scores is None:
            return None
        scores = np.full(self.n_images, np.nan, np.float32)
        scores[known.likeness.rows] = known.oddity.scores
        return scores

    @property
    def duplicates(self) -> Duplicates:
        return self.survey.duplicates

    @property
    def n_alike(self) -> NDArray[np.int32]:
        """N: how many duplicates an image has in its cluster, itself among them."""
        duplicates = self.duplicates
        found: NDArray[np.int32] = self._kept(
            "alike", duplicates, lambda: duplicates.counted(self.clusters)
        )
        return found

    @property
    def agreement(self) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Rows, and of each the share of its neighbours that are in its cluster now."""
        known = self.survey.neighbours
        if known is None:
            return None
        rows, nearest = known
        found: NDArray[np.float32] = self._kept(
            "agreement",
            known,
            lambda: (self.clusters[nearest] == self.clusters[rows, None]).mean(axis=1),
        )
        return rows, found

    def with_duplicates(self, rows: list[int]) -> list[int]:
        """Those and all that they stand for in their clusters."""
        return self.duplicates.with_all(rows, self.clusters) if rows else rows

    # What to show

    def rows(self, wish: Wish) -> NDArray[np.uint32]:
        """In their order; those of which the key is not known come last."""
        chosen = np.ones(self.n_images, bool)
        if wish.cluster is not None:
            chosen &= self.clusters == wish.cluster
        if wish.find:
            wanted = wish.find.lower()
            chosen &= np.fromiter((wanted in name for name in self._lowered), bool, self.n_images)
        rows: NDArray[np.int64] = np.flatnonzero(chosen)
        if wish.once and not wish.find:  # who looks for a name finds every file of it
            rows = self.duplicates.once(rows)
        keys = self._keys(wish.order)[rows]
        unknown = np.isnan(keys)
        order = np.lexsort((rows, -keys if wish.backwards else keys))
        order = order[np.argsort(unknown[order], kind="stable")]
        if wish.order == "odd" and wish.cluster is None:
            order = order[~unknown[order]]
        return rows[order].astype(np.uint32)

    def _keys(self, order: str) -> NDArray[np.float64]:
        """N, the first one the smallest."""
        if order == "confidence":
            return -self.facts.confidence
        if order == "centre":
            return self.from_centre.astype(np.float64)
        if order == "odd":
            odd = self.odd
            return np.full(self.n_images, np.nan) if odd is None else -odd.astype(np.float64)
        if order == "date":
            dates = self.survey.dates
            if dates is None:
                return np.full(self.n_images, np.nan)
            return np.where(dates == UNKNOWN_DATE, np.nan, dates.astype(np.float64))
        ranks = {"folder": "_folder_rank", "name": "_name_rank"}
        return np.asarray(getattr(self, ranks.get(order, "random_rank")), np.float64)

    def nearest(self, row: int) -> list[tuple[int, float]]:
        likeness = self.likeness
        if likeness is None:
            return []
        found = likeness.nearest(row, N_NEAREST)
        return [(other, round(cosine, 3)) for other, cosine in found]

    def parts(self, cluster: int, n_parts: int) -> dict[str, Any]:
        """What a cluster may be split into, rows by chance; `n_parts` 0: as many as its images
        suggest. Raises InputError where its features tell nothing."""
        members = np.flatnonzero(self.clusters == cluster)
        likeness = None if self.likeness is None else self.likeness.of_rows(members)
        if likeness is None or likeness.n_images < FEWEST_IMAGES:
            raise InputError(
                f"cluster {cluster} cannot be split: it has fewer than {FEWEST_IMAGES} images "
                "whose features are known"
            )
        found = suggest_parts(likeness.directions, n_parts)
        by_chance = self.random_rank[likeness.rows]
        return {
            "parts": [
                likeness.rows[part[np.argsort(by_chance[part])]].tolist() for part in found.members
            ],
            "n_suggested": found.n_suggested,
            "n_left": len(members) - likeness.n_images,
        }

    def map(self) -> dict[str, Any]:
        """Rows of the sample, and their places on a grid."""
        if self._sample is None or self.layouts is None:
            return {"rows": [], "cluster": [], "layouts": {}}
        rows = self._sample.rows
        return {
            "rows": rows.tolist(),
            "cluster": self.clusters[rows].tolist(),
            "layouts": {name: on_grid(each).T.tolist() for name, each in self.layouts.items()},
        }


def _rank(keys: Sequence[Any]) -> NDArray[np.int64]:
    """N: at which place each comes."""
    rank = np.empty(len(keys), np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank
