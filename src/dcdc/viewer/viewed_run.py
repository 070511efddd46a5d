"""A run as the viewer has it: what is known of every image, and the orders to show them in.

Shapes: N images of the run, n of them with features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.vector_set import VectorSet
from dcdc.engine.edits import OUTSIDE
from dcdc.printable import shown
from dcdc.report.facts import RunFacts, RunSample
from dcdc.report.map_layout import on_grid
from dcdc.viewer.corrections import Corrections
from dcdc.viewer.likeness import MOST, Likeness
from dcdc.viewer.originals import Originals
from dcdc.viewer.survey import UNKNOWN_DATE, Survey

ORDERS = ("random", "confidence", "centre", "odd", "folder", "name", "date")
N_NEAREST = 24
_SHOWN_OF_A_CLUSTER = 4


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
    """Of images with the same content the first alone."""


class ViewedRun:
    def __init__(
        self,
        facts: RunFacts,
        corrections: Corrections,
        originals: Originals | None,
        notes: Sequence[str] = (),
        *,
        sample: RunSample | None = None,
        vectors: VectorSet | None = None,
        layouts: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """`notes`: what cannot be shown, and why. `vectors`: what the run grouped, if not images.
        `layouts`: of the sample."""
        self.facts, self.originals, self.notes = facts, originals, list(notes)
        self.n_images = len(facts.names)
        self.corrections = corrections
        self._sample, self._layouts = sample, layouts
        rows, features = _features(facts, sample, vectors)
        self.likeness = None if features is None else Likeness.of(rows, features)
        self.survey = Survey(self.n_images, originals, features)
        self.take_corrections()

    def take_corrections(self) -> None:
        """Clusters and names as the edits leave them."""
        found = self.corrections.corrected()
        self.clusters, self.n_clusters = found.clusters, found.n_clusters
        self.names = found.names
        self.__dict__.pop("from_centre", None)

    # What is known of each image

    @cached_property
    def _random_rank(self) -> NDArray[np.int64]:
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
    def from_centre(self) -> NDArray[np.float32]:
        """N; NaN where it is not known."""
        if self.likeness is None:
            return np.full(self.n_images, np.nan, np.float32)
        return self.likeness.from_centres(self.clusters, self.n_images)

    @property
    def odd(self) -> NDArray[np.float32] | None:
        """N: out-of-distribution scores, NaN where not known; None while they are worked out, and
        where there are none."""
        found = self.survey.oddity
        if self.likeness is None or found is None or found.scores is None:
            return None
        scores = np.full(self.n_images, np.nan, np.float32)
        scores[self.likeness.rows] = found.scores
        return scores

    @property
    def copies(self) -> list[NDArray[np.int64]]:
        """Rows of images with the same content."""
        return self.survey.copies or []

    @property
    def near_duplicates(self) -> list[NDArray[np.int64]]:
        """Rows of images that are nearly the same; groups of exact copies alone are left out."""
        found = self.survey.oddity
        if self.likeness is None or found is None:
            return []
        first = np.arange(self.n_images)
        for group in self.copies:
            first[group] = group[0]
        groups = (self.likeness.rows[group] for group in found.near_duplicates)
        return [group for group in groups if len(np.unique(first[group])) > 1]

    # What to show

    def rows(self, wish: Wish) -> NDArray[np.uint32]:
        """In their order; those of which the key is not known come last."""
        chosen = np.ones(self.n_images, bool)
        if wish.cluster is not None:
            chosen &= self.clusters == wish.cluster
        if wish.find:
            wanted = wish.find.lower()
            chosen &= np.fromiter((wanted in name for name in self._lowered), bool, self.n_images)
        elif wish.once:  # who looks for a name finds every file of it
            for group in self.copies:
                inside = group[chosen[group]]
                chosen[inside[1:]] = False
        rows = np.flatnonzero(chosen)
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
        return np.asarray(getattr(self, ranks.get(order, "_random_rank")), np.float64)

    def overview(self) -> dict[str, Any]:
        """What the page begins with."""
        copies, near = self.copies, self.near_duplicates
        odd, dates = self.odd, self.survey.dates
        return {
            "source": shown(self.facts.source),
            "run": shown(self.facts.path.resolve().name),
            "things": self.facts.things,
            "n_images": self.n_images,
            "n_clusters": self.n_clusters,
            "has_images": self.originals is not None,
            "is_coarse": self.originals is not None and self._is_coarse(self.originals),
            "notes": [shown(note) for note in self.notes],
            "clusters": self._clusters(),
            "n_outside": int((self.clusters == OUTSIDE).sum()),
            "is_surveying": not self.survey.done.is_set(),
            "n_with_features": 0 if self.likeness is None else len(self.likeness.rows),
            "n_odd": None if odd is None else int((odd > 1).sum()),
            "has_dates": dates is not None and bool((dates != UNKNOWN_DATE).any()),
            "copies": None if self.survey.copies is None else _counted(copies),
            "near_duplicates": None if self.survey.oddity is None else _counted(near),
            "layouts": [] if self._layouts is None else list(self._layouts),
            **self.corrections.told(),
        }

    def _is_coarse(self, originals: Originals) -> bool:
        """Whether pixels were enlarged, and should be seen as squares."""
        return isinstance(originals.of(0), np.ndarray)

    def _clusters(self) -> list[dict[str, Any]]:
        """The largest first, with some images by chance."""
        by_chance = np.argsort(self._random_rank)
        by_chance = by_chance[np.argsort(self.clusters[by_chance], kind="stable")]
        clusters = self.clusters[by_chance]
        found = []
        for number in range(self.n_clusters):
            start, stop = np.searchsorted(clusters, [number, number + 1])
            members = by_chance[start:stop]
            mean = float(self.facts.confidence[members].mean()) if len(members) else 0.0
            found.append(
                {
                    "number": number,
                    "name": shown(self.names.get(number, "")),
                    "size": len(members),
                    "confidence": round(mean, 3),
                    "some": members[:_SHOWN_OF_A_CLUSTER].tolist(),
                }
            )
        return sorted(found, key=lambda each: -each["size"])

    def about(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Of each image, what a person may read of it."""
        facts, odd, dates = self.facts, self.odd, self.survey.dates
        copies = self.survey.n_copies
        found = []
        for row in rows:
            folder, _, name = facts.names[row].rpartition("/")
            about: dict[str, Any] = {
                "row": row,
                "name": shown(name),
                "folder": shown(folder),
                "cluster": int(self.clusters[row]),
                "confidence": round(float(facts.confidence[row]), 3),
            }
            if facts.runner_up is not None and facts.runner_up_confidence is not None:
                about["runner_up"] = int(facts.runner_up[row])
                about["runner_up_confidence"] = round(float(facts.runner_up_confidence[row]), 3)
            if self.clusters[row] != facts.assignments[row]:
                about["was"] = int(facts.assignments[row])
            if facts.targets is not None:
                about["class"] = shown(str(facts.targets[row]))
            if not np.isnan(self.from_centre[row]):
                about["centre"] = round(float(self.from_centre[row]), 3)
            if odd is not None and not np.isnan(odd[row]):
                about["odd"] = round(float(odd[row]), 2)
            if copies is not None and copies[row] > 1:
                about["copies"] = int(copies[row])
            if dates is not None and dates[row] != UNKNOWN_DATE:
                about["date"] = int(dates[row])
            found.append(about)
        return found

    def nearest(self, row: int) -> list[tuple[int, float]]:
        if self.likeness is None:
            return []
        found = self.likeness.nearest(row, N_NEAREST)
        return [(other, round(cosine, 3)) for other, cosine in found]

    def map(self) -> dict[str, Any]:
        """Rows of the sample, and their places on a grid."""
        if self._sample is None or self._layouts is None:
            return {"rows": [], "cluster": [], "layouts": {}}
        rows = self._sample.rows
        return {
            "rows": rows.tolist(),
            "cluster": self.clusters[rows].tolist(),
            "layouts": {name: on_grid(each).T.tolist() for name, each in self._layouts.items()},
        }


def _features(
    facts: RunFacts, sample: RunSample | None, vectors: VectorSet | None
) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """Those of all images, where they are at hand and few enough, or of the run's sample."""
    n_images = len(facts.names)
    if vectors is not None and n_images <= MOST and facts.why_not_these_images(vectors) is None:
        return np.arange(n_images), vectors.vectors
    if sample is None:
        return np.arange(0), None
    return sample.rows, sample.features


def _rank(keys: Sequence[Any]) -> NDArray[np.int64]:
    """N: at which place each comes."""
    rank = np.empty(len(keys), np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank


def _counted(groups: Sequence[NDArray[np.int64]]) -> dict[str, int]:
    return {"groups": len(groups), "images": sum(map(len, groups))}
