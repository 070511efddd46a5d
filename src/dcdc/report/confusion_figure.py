"""Classes against clusters, the clusters in the order of the classes they stand for."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dcdc.report.facts import RunFacts
from dcdc.report.matching import matched_order, short
from dcdc.report.themes import Theme

MAX_CLASSES = 50

_MAX_COLUMNS = 60
_COUNTED = 20  # up to here a count fits into its cell


@dataclass(frozen=True, eq=False)
class Confusion:
    """classes x clusters; the first `n_matched` of both are matched one to one."""

    table: NDArray[np.int64]
    classes: list[str]
    clusters: list[str]
    n_matched: int


def match(facts: RunFacts) -> Confusion:
    assert facts.targets is not None
    inside = facts.is_inside
    order = matched_order(facts.targets[inside], facts.assignments[inside])
    labels = [str(cluster) for cluster in order.clusters]
    table = order.table
    if len(labels) > _MAX_COLUMNS:
        n_kept = max(order.n_matched, _MAX_COLUMNS - 1)
        rest = table[:, n_kept:].sum(axis=1, keepdims=True)
        table = np.hstack([table[:, :n_kept], rest])
        labels = [*labels[:n_kept], f"{len(labels) - n_kept} more"]
    return Confusion(table, order.classes, labels, order.n_matched)


def draw_confusion(confusion: Confusion, theme: Theme) -> Figure:
    table = confusion.table
    n_classes, n_columns = table.shape
    cell = 0.44 if max(table.shape) <= _COUNTED else 0.2
    names = [short(name) for name in confusion.classes]
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
