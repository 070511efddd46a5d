"""Where two methods answer otherwise: counts of every pair, and images to look at.

A cluster stands for the class that it is matched to. Where classes are not known, a cluster of one
method stands for the one of the other that it is matched to. Shapes: N images, n of them shown, m
methods.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.pictures import pictures_of
from dcdc.data.vector_set import Data
from dcdc.metrics.matching import match_clusters
from dcdc.report.compared_runs import ComparedRun
from dcdc.report.confusion_figure import MAX_CLASSES
from dcdc.report.gallery import is_coarse
from dcdc.report.matching import matched_order, natural_order
from dcdc.report.page_data import short_name
from dcdc.report.sheet import Sheet, make_sheet

MOST_SHOWN = 2_000
_NONE = -1
"""The class of a cluster that is matched to none."""


@dataclass(frozen=True)
class ShownImages:
    """An even sample, in one picture."""

    rows: tuple[int, ...]
    """n, rising: positions in the set."""
    sheet: Sheet | None
    coarse: bool = False
    """Whether their pixels should stay sharp squares."""
    why_none: str | None = None
    """What keeps them from being seen."""


def shown_images(data: Data) -> ShownImages:
    n_shown = min(MOST_SHOWN, data.n_images)
    rows = np.unique(np.linspace(0, data.n_images - 1, n_shown).astype(np.int64))
    pictures, why_none = pictures_of(data)
    shown = tuple(rows.tolist())
    if pictures is None:
        return ShownImages(shown, None, why_none=why_none)
    return ShownImages(shown, make_sheet(pictures, shown), is_coarse(pictures.shape[1]))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Of every two methods over all images, m x m."""

    same: NDArray[np.int64]
    """Images that both answer alike; on the diagonal all, or those in clusters that stand for a
    class."""
    only: NDArray[np.int64] | None
    """Images that the first has right and the second wrong; none without classes."""
    stands_for: list[list[int]] | None
    """By method and cluster: the number of a class, or -1."""
    matches: dict[str, list[int]] | None
    """Without classes, by "first,second": of each cluster of the first, that of the second."""


def agreement_of(runs: Sequence[ComparedRun], classes: Sequence[str] | None) -> Agreement:
    """Of runs on the same images; `classes` in the order of their numbers."""
    return _by_matches(runs) if classes is None else _by_classes(runs, classes)


def _by_classes(runs: Sequence[ComparedRun], classes: Sequence[str]) -> Agreement:
    targets = runs[0].facts.targets
    assert targets is not None
    number_of = {name: number for number, name in enumerate(classes)}
    truth = np.array([number_of[name] for name in targets.tolist()])
    stands_for, answers = [], []
    for run in runs:
        found = match_clusters(targets, run.facts.assignments)
        numbers = [
            number_of[found[cluster]] if cluster in found else _NONE
            for cluster in range(run.facts.n_clusters)
        ]
        stands_for.append(numbers)
        answers.append(np.array(numbers)[run.facts.assignments])
    right = np.stack([answer == truth for answer in answers]).astype(np.int64)
    same = np.array(
        [[int(((one == other) & (one != _NONE)).sum()) for other in answers] for one in answers]
    )
    return Agreement(same, right @ (1 - right).T, stands_for, None)


def _by_matches(runs: Sequence[ComparedRun]) -> Agreement:
    same = np.diag([len(run.facts.assignments) for run in runs])
    matches: dict[str, list[int]] = {}
    for first, second in combinations(range(len(runs)), 2):
        ours, theirs = (runs[at].facts for at in (first, second))
        found = match_clusters(theirs.assignments, ours.assignments)
        pairs = [found.get(cluster, _NONE) for cluster in range(ours.n_clusters)]
        back = {of: cluster for cluster, of in found.items()}
        matches[f"{first},{second}"] = pairs
        matches[f"{second},{first}"] = [
            back.get(cluster, _NONE) for cluster in range(theirs.n_clusters)
        ]
        n_same = int((np.array(pairs)[ours.assignments] == theirs.assignments).sum())
        same[first, second] = same[second, first] = n_same
    return Agreement(same, None, None, matches)


def classes_of(runs: Sequence[ComparedRun]) -> list[str] | None:
    """In their natural order."""
    targets = runs[0].facts.targets
    if targets is None:
        return None
    names = sorted(set(targets.tolist()))
    return [names[at] for at in natural_order(names)]


def picker_data(
    runs: Sequence[ComparedRun],
    classes: Sequence[str] | None,
    agreement: Agreement,
    shown: ShownImages,
) -> dict[str, Any]:
    """What the page's script works with."""
    rows = np.array(shown.rows, np.int64)
    facts = runs[0].facts
    number_of = {name: number for number, name in enumerate(classes or ())}
    is_few = classes is not None and len(classes) <= MAX_CLASSES
    return {
        "methods": [run.name for run in runs],
        "things": facts.things,
        "n_images": len(facts.names),
        "classes": classes,
        "same": agreement.same.tolist(),
        "only": None if agreement.only is None else agreement.only.tolist(),
        "stands_for": agreement.stands_for,
        "matches": agreement.matches,
        "clusters": [run.facts.assignments[rows].tolist() for run in runs],
        "coarse": shown.coarse,
        "shown": {
            "sheet": None if shown.sheet is None else asdict(shown.sheet),
            "name": [short_name(facts.names[row]) for row in shown.rows],
            "class": (
                None
                if facts.targets is None
                else [number_of[name] for name in facts.targets[rows].tolist()]
            ),
        },
        "tables": [_table(run) for run in runs] if is_few else None,
    }


def _table(run: ComparedRun) -> dict[str, Any]:
    """Classes against clusters, those that are matched first, in one order."""
    assert run.facts.targets is not None
    order = matched_order(run.facts.targets, run.facts.assignments)
    return {
        "classes": order.classes,
        "clusters": order.clusters,
        "counts": order.table.tolist(),
    }
