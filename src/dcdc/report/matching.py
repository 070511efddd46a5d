"""The order in which classes and clusters are shown beside each other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.metrics.matching import matched_cells, pair_labels


@dataclass(frozen=True, eq=False)
class MatchedOrder:
    """Matched classes and their clusters first, then what is left over, large clusters first."""

    classes: list[Any]
    clusters: list[Any]
    n_matched: int
    table: NDArray[np.int64]  # classes x clusters: how many images share both


def matched_order(targets: ArrayLike, assignments: ArrayLike) -> MatchedOrder:
    """Of the labels that occur."""
    pairs = pair_labels(targets, assignments)
    rows, columns = matched_cells(pairs.table)
    # A pair that shares no image completes the matching but means nothing.
    cluster_of = {
        int(row): int(column)
        for row, column in zip(rows, columns, strict=True)
        if pairs.table[row, column] > 0
    }
    class_order = natural_order(pairs.classes)
    class_order.sort(key=lambda row: row not in cluster_of)
    matched = [cluster_of[row] for row in class_order if row in cluster_of]
    sizes = pairs.table.sum(axis=0)
    unmatched = sorted(
        set(range(len(pairs.clusters))) - set(matched), key=lambda column: (-sizes[column], column)
    )
    cluster_order = [*matched, *unmatched]
    return MatchedOrder(
        classes=[pairs.classes[row] for row in class_order],
        clusters=[pairs.clusters[column] for column in cluster_order],
        n_matched=len(matched),
        table=pairs.table[class_order][:, cluster_order],
    )


def short(name: str, longest: int = 24) -> str:
    """A class's name on one line."""
    line = " ".join(name.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def natural_order(classes: list[Any]) -> list[int]:
    """Positions of the classes, sorted: as numbers, where every class is one."""
    keys = [(0, name) for name in classes]
    if all(isinstance(name, str) and name.lstrip("-").isdecimal() for name in classes):
        keys = [(int(name), name) for name in classes]
    return sorted(range(len(classes)), key=keys.__getitem__)
