"""What the page's script works with, as plain values: images by columns, and their places.

Shapes: N images of the run, n of them on the map.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dcdc.data.pictures import Pictures
from dcdc.metrics.health import OUTLIER
from dcdc.report.confusion_figure import NONE, Confusion
from dcdc.report.facts import ClusterFacts, RunFacts
from dcdc.report.gallery import is_coarse
from dcdc.report.map_layout import on_grid
from dcdc.report.sheet import Sheet, make_sheet
from dcdc.report.themes import DARK, LIGHT

_LONGEST_NAME = 120  # characters of an image's name in a caption


@dataclass(frozen=True, eq=False)
class MapPoints:
    """Places of the sampled images: their rows among the run's (n), and n x 2 per layout."""

    rows: NDArray[np.int64]
    layouts: Mapping[str, NDArray[np.float32]]


def page_data(
    facts: RunFacts,
    clusters: Sequence[ClusterFacts],
    *,
    images: Pictures | None,
    points: MapPoints | None,
    later: Mapping[int, Sequence[list[int]]],
    kinds: Sequence[str],
    confusion: Confusion | None,
    shown: Sequence[int] = (),
    answers: str = "",
) -> dict[str, Any]:
    """`later`: images by cluster, of those that the script shows, a list for each of `kinds`;
    `shown`: images that a person may say something of; `answers`: the digest of what corrections
    are of."""
    classes = None if facts.targets is None else sorted(set(facts.targets.tolist()))
    return {
        "n_clusters": facts.n_clusters,
        "names": {str(number): name for number, name in facts.cluster_names.items()},
        "clusters": {
            str(cluster.number): {
                "size": cluster.size,
                "confidence": round(cluster.mean_confidence, 4),
                "purity": cluster.purity,
                "main_class": cluster.main_class,
            }
            for cluster in clusters
        },
        "classes": classes,
        "class_word": facts.class_word,
        "answers": answers,
        "shown": {
            str(row): {"name": facts.names[row], "cluster": int(facts.assignments[row])}
            for row in sorted(set(shown))
        },
        "kinds": kinds,
        "colours": {"light": LIGHT.many_colours, "dark": DARK.many_colours},
        "coarse": images is not None and is_coarse(images.shape[1]),
        "map": None if points is None else _map(facts, classes, images, points),
        "later": _later(facts, classes, images, later),
        "confusion": None if confusion is None else _confusion(confusion, classes or []),
    }


def as_script(value: Any) -> Markup:
    """JSON that nothing in it can end: pure ASCII, without <, > and &."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def short_name(name: str) -> str:
    """The end of a long path tells more than its beginning."""
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"


def _images(
    facts: RunFacts, classes: list[str] | None, rows: Sequence[int], sheet: Sheet | None
) -> dict[str, Any]:
    """What is known of these images, a list for each kind of fact."""
    at = np.asarray(rows, dtype=np.int64)
    code_of = {name: code for code, name in enumerate(classes or ())}
    return {
        "sheet": None if sheet is None else asdict(sheet),
        "name": [short_name(facts.names[row]) for row in rows],
        "cluster": facts.assignments[at].tolist(),
        "confidence": _rounded(facts.confidence[at]),
        "class": (
            None
            if facts.targets is None
            else [code_of[name] for name in facts.targets[at].tolist()]
        ),
        "runner_up": None if facts.runner_up is None else facts.runner_up[at].tolist(),
        "runner_up_confidence": (
            None if facts.runner_up_confidence is None else _rounded(facts.runner_up_confidence[at])
        ),
    }


def _map(
    facts: RunFacts,
    classes: list[str] | None,
    images: Pictures | None,
    points: MapPoints,
) -> dict[str, Any]:
    rows = points.rows.tolist()
    sheet = None if images is None else make_sheet(images, rows)
    layouts = {name: on_grid(layout).T.tolist() for name, layout in points.layouts.items()}
    return _images(facts, classes, rows, sheet) | {"layouts": layouts}


def _later(
    facts: RunFacts,
    classes: list[str] | None,
    images: Pictures | None,
    later: Mapping[int, Sequence[list[int]]],
) -> dict[str, Any] | None:
    if images is None or not later:
        return None
    rows: list[int] = []
    cards: dict[str, list[list[int]]] = {}
    for number, kinds in later.items():
        cards[str(number)] = []
        for kind in kinds:
            cards[str(number)].append(list(range(len(rows), len(rows) + len(kind))))
            rows += kind
    return _images(facts, classes, rows, make_sheet(images, rows)) | {"cards": cards}


def _confusion(confusion: Confusion, classes: list[str]) -> dict[str, Any]:
    return {
        "classes": [classes.index(name) for name in confusion.classes],
        # The last column may be of all that are left.
        "clusters": [_number(name) for name in confusion.clusters],
    }


def _number(name: str) -> int | None:
    if name == NONE:
        return OUTLIER
    return int(name) if name.isdecimal() else None


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 3) for value in values]
