"""What a page reads of a run and of its images, as plain values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcdc.engine.edits import OUTSIDE
from dcdc.printable import shown
from dcdc.report.facts import OVERSTATED
from dcdc.viewer.likeness import Groups
from dcdc.viewer.survey import UNKNOWN_DATE
from dcdc.viewer.viewed_run import ViewedRun

_SHOWN_OF_A_CLUSTER = 4


def overview(run: ViewedRun) -> dict[str, Any]:
    """What the page begins with."""
    survey, odd, dates = run.survey, run.odd, run.survey.dates
    by_features = survey.by_features
    knows_alike = by_features is not None and by_features.oddity is not None
    return {
        "source": shown(run.facts.source),
        "run": shown(run.facts.path.resolve().name),
        "things": run.facts.things,
        "n_images": run.n_images,
        "n_clusters": run.n_clusters,
        "has_images": run.originals is not None,
        "is_coarse": run.originals is not None and isinstance(run.originals.of(0), np.ndarray),
        "notes": [shown(note) for note in run.notes],
        "clusters": _clusters(run),
        **_trust(run),
        "class_word": run.facts.class_word,
        "n_outside": int((run.clusters == OUTSIDE).sum()),
        "is_surveying": not survey.done.is_set(),
        "n_with_features": 0 if by_features is None else by_features.likeness.n_images,
        "n_odd": None if odd is None else int((odd > 1).sum()),
        "has_dates": dates is not None and bool((dates != UNKNOWN_DATE).any()),
        "copies": None if survey.copies is None else _counted(run.duplicates.copies),
        "near_duplicates": _counted(run.duplicates.near) if knows_alike else None,
        "layouts": [] if run.layouts is None else list(run.layouts),
        **run.corrections.told(),
    }


def _trust(run: ViewedRun) -> dict[str, Any]:
    """What the network says of its own answers, and what their neighbours say."""
    share = float(run.facts.confidence.mean())
    known = run.agreement
    agreement = None if known is None else round(float(known[1].mean()), 3)
    return {
        "share": round(share, 3),
        "agreement": agreement,
        "overstates": agreement is not None and share - agreement > OVERSTATED,
    }


def _clusters(run: ViewedRun) -> list[dict[str, Any]]:
    """The largest first, with some images by chance."""
    by_chance = np.argsort(run.random_rank)
    by_chance = by_chance[np.argsort(run.clusters[by_chance], kind="stable")]
    clusters = run.clusters[by_chance]
    agreement = np.full(run.n_images, np.nan, np.float32)
    if run.agreement is not None:
        rows, agreement_of_rows = run.agreement
        agreement[rows] = agreement_of_rows
    found = []
    for number in range(run.n_clusters):
        start, stop = np.searchsorted(clusters, [number, number + 1])
        members = by_chance[start:stop]
        mean = float(run.facts.confidence[members].mean()) if len(members) else 0.0
        agree = agreement[members]
        agree = agree[~np.isnan(agree)]
        found.append(
            {
                "number": number,
                "name": shown(run.names.get(number, "")),
                "size": len(members),
                "confidence": round(mean, 3),
                "agreement": round(float(agree.mean()), 3) if len(agree) else None,
                "some": members[:_SHOWN_OF_A_CLUSTER].tolist(),
            }
        )
    return sorted(found, key=lambda each: -each["size"])


def about(run: ViewedRun, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Of each image, what a person may read of it."""
    facts, odd, dates = run.facts, run.odd, run.survey.dates
    n_copies, n_alike, from_centre = run.survey.n_copies, run.n_alike, run.from_centre
    found = []
    for row in rows:
        folder, _, name = facts.names[row].rpartition("/")
        about: dict[str, Any] = {
            "row": row,
            "name": shown(name),
            "folder": shown(folder),
            "cluster": int(run.clusters[row]),
            "confidence": round(float(facts.confidence[row]), 3),
        }
        if facts.runner_up is not None and facts.runner_up_confidence is not None:
            about["runner_up"] = int(facts.runner_up[row])
            about["runner_up_confidence"] = round(float(facts.runner_up_confidence[row]), 3)
        if run.clusters[row] != facts.assignments[row]:
            about["was"] = int(facts.assignments[row])
        if facts.targets is not None:
            about["class"] = shown(str(facts.targets[row]))
        if not np.isnan(from_centre[row]):
            about["centre"] = round(float(from_centre[row]), 3)
        if odd is not None and not np.isnan(odd[row]):
            about["odd"] = round(float(odd[row]), 2)
        if n_copies is not None and n_copies[row] > 1:
            about["copies"] = int(n_copies[row])
        if n_alike[row] > 1:
            about["alike"] = int(n_alike[row])
        if dates is not None and dates[row] != UNKNOWN_DATE:
            about["date"] = int(dates[row])
        found.append(about)
    return found


def _counted(groups: Groups) -> dict[str, int]:
    return {"groups": len(groups), "images": sum(map(len, groups))}
