"""Classes against clusters, the clusters in the order of the classes they stand for."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dcdc.metrics.labels import pair_labels
from dcdc.metrics.matching import matched_cells
from dcdc.report.facts import RunFacts
from dcdc.report.theme import Theme

MAX_CLASSES = 50

_MAX_COLUMNS = 60
_COUNTED = 20  # up to here a count fits into its cell
_LONGEST_NAME = 24


@dataclass(frozen=True, eq=False)
class Confusion:
    """classes x clusters; the first `n_matched` of both are matched one to one."""

    table: NDArray[np.int64]
    classes: list[str]
    clusters: list[str]
    n_matched: int


def match(facts: RunFacts) -> Confusion:
    """Matched classes and their clusters first, then what is left over, large clusters first."""
    assert facts.targets is not None
    pairs = pair_labels(facts.targets, facts.assignments)
    rows, columns = matched_cells(pairs.table)
    # A pair that shares no image completes the matching but means nothing.
    cluster_of = {
        int(row): int(column)
        for row, column in zip(rows, columns, strict=True)
        if pairs.table[row, column] > 0
    }
    class_order = sorted(range(len(pairs.classes)), key=_natural_order(pairs.classes).__getitem__)
    class_order.sort(key=lambda row: row not in cluster_of)
    matched = [cluster_of[row] for row in class_order if row in cluster_of]
    sizes = pairs.table.sum(axis=0)
    unmatched = sorted(
        set(range(len(pairs.clusters))) - set(matched), key=lambda column: (-sizes[column], column)
    )
    shown = [*matched, *unmatched]
    labels = [str(pairs.clusters[column]) for column in shown]
    table = pairs.table[class_order][:, shown]
    if len(shown) > _MAX_COLUMNS:
        n_kept = max(len(matched), _MAX_COLUMNS - 1)
        rest = table[:, n_kept:].sum(axis=1, keepdims=True)
        table = np.hstack([table[:, :n_kept], rest])
        labels = [*labels[:n_kept], f"{len(shown) - n_kept} more"]
    return Confusion(table, [pairs.classes[row] for row in class_order], labels, len(matched))


def draw_confusion(confusion: Confusion, theme: Theme) -> Figure:
    table = confusion.table
    n_classes, n_columns = table.shape
    cell = 0.44 if max(table.shape) <= _COUNTED else 0.2
    names = [_short(name) for name in confusion.classes]
    margin = 1.9 + 0.075 * max(len(name) for name in names)
    figure = Figure(
        figsize=(max(5.0, margin + cell * n_columns), max(3.0, 1.1 + cell * n_classes)),
        layout="constrained",
    )
    axes = figure.subplots()
    shares = table / table.sum(axis=1, keepdims=True)
    colours = LinearSegmentedColormap.from_list("share", [theme.paper, theme.colours[0]])
    image = axes.imshow(shares, cmap=colours, vmin=0, vmax=1, aspect="auto")
    if max(table.shape) <= _COUNTED:
        _write_counts(axes, table, shares, theme)
    label_size = 9 if cell > 0.4 else 7
    crowded = n_columns > _COUNTED or len(confusion.clusters[-1]) > 3
    axes.set_xticks(
        range(n_columns), confusion.clusters, fontsize=label_size, rotation=90 if crowded else 0
    )
    axes.set_yticks(range(n_classes), names, fontsize=label_size)
    axes.spines[:].set_visible(True)
    # Lines between the matched square and what is left over.
    if confusion.n_matched < n_columns:
        axes.axvline(confusion.n_matched - 0.5, color=theme.ink, linewidth=1)
    if confusion.n_matched < n_classes:
        axes.axhline(confusion.n_matched - 0.5, color=theme.ink, linewidth=1)
    axes.set_xlabel("cluster, in the order of the classes matched to them")
    axes.set_ylabel("class")
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    bar.set_label("share of the class")
    return figure


def _write_counts(
    axes: Axes, table: NDArray[np.int64], shares: NDArray[np.float64], theme: Theme
) -> None:
    size = 8 if table.max() < 10_000 else 6
    for (row, column), count in np.ndenumerate(table):
        if count:
            colour = theme.paper if shares[row, column] > 0.5 else theme.ink
            axes.text(
                column, row, str(count), ha="center", va="center", fontsize=size, color=colour
            )


def _natural_order(classes: list[str]) -> list[tuple[int, str]]:
    """Sort keys: numbers by value, where every class is one."""
    if all(name.lstrip("-").isdecimal() for name in classes):
        return [(int(name), name) for name in classes]
    return [(0, name) for name in classes]


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 1]}…"
