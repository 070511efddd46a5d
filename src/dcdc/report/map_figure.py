"""The map: features laid out on a plane, and drawn by cluster and, where known, by class.

van der Maaten and Hinton, Visualizing data using t-SNE, 2008.

Shapes: n images, D features.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dcdc.metrics.health import OUTLIER
from dcdc.report.matching import matched_order, natural_order, short
from dcdc.report.themes import Theme

MOST_NAMED = 30  # labels that a legend can hold, and an eye can look up
_MARKERS = "os^D"
_LEGEND_ROWS = 15
_LONGEST_NAME = 16
_Style = tuple[str, str]  # colour, marker


def draw_map(
    layouts: Mapping[str, NDArray[np.float32]],
    assignments: NDArray[np.int64],
    targets: NDArray[Any] | None,
    theme: Theme,
) -> Figure:
    """`layouts` (n x 2 each, by name), clusters and classes of the same n images.

    A class has the look of the cluster matched to it.
    """
    by_cluster, by_class = _styles(layouts, assignments, targets, theme)
    colourings: list[tuple[str, NDArray[Any], dict[Any, _Style]]] = [
        ("cluster", assignments, by_cluster)
    ]
    if targets is not None:
        colourings.append(("class", targets, by_class))
    width = 3.4 * len(layouts) + max(_legend_width(styles) for _, _, styles in colourings)
    figure = Figure(figsize=(width, 0.1 + 3.5 * len(colourings)), layout="constrained")
    rows = figure.subplots(len(colourings), len(layouts), squeeze=False)
    for row, (kind, labels, styles) in zip(rows, colourings, strict=True):
        for axes, (name, plane) in zip(row, layouts.items(), strict=True):
            _scatter(axes, plane, labels, styles)
            axes.set_title(f"{name}, by {kind}", fontsize=10)
            axes.set_xlabel(f"{name} 1", fontsize=9)
            axes.set_ylabel(f"{name} 2", fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_box_aspect(1)
            axes.spines[:].set_visible(True)
            axes.spines[:].set_color(theme.line)
        if len(styles) <= MOST_NAMED:
            _legend(row[-1], kind, styles)
    return figure


def _scatter(
    axes: Axes, plane: NDArray[np.float32], labels: NDArray[Any], styles: dict[Any, _Style]
) -> None:
    size = float(np.clip(6_000 / len(plane), 3, 30))
    # In a seeded order, so that no label is drawn on top of all others.
    order = np.random.default_rng(0).permutation(len(plane))
    # A few layers of each marker: matplotlib draws a marker for many points at once.
    for layer in np.array_split(order, min(8, len(order))):
        of_layer = [styles[label] for label in labels[layer].tolist()]
        for marker in dict.fromkeys(marker for _, marker in of_layer):
            chosen = np.array([own == marker for _, own in of_layer])
            points = plane[layer[chosen]]
            axes.scatter(
                points[:, 0],
                points[:, 1],
                s=size,
                c=[colour for colour, own in of_layer if own == marker],
                marker=marker,
                linewidths=0,
                alpha=0.8,
                rasterized=True,
            )
    axes.margins(0.04)


def _legend_width(styles: dict[Any, _Style]) -> float:
    """In inches; 0 where there are too many labels for a legend."""
    if len(styles) > MOST_NAMED:
        return 0.0
    longest = max(len(short(str(label), _LONGEST_NAME)) for label in styles)
    return 0.15 + _n_columns(styles) * max(0.5, 0.25 + 0.075 * longest)


def _n_columns(styles: dict[Any, _Style]) -> int:
    return 1 + (len(styles) - 1) // _LEGEND_ROWS


def _legend(axes: Axes, kind: str, styles: dict[Any, _Style]) -> None:
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=marker,
            color=colour,
            label=short(str(label), _LONGEST_NAME),
        )
        for label, (colour, marker) in styles.items()
    ]
    axes.legend(
        handles=handles,
        title=kind,
        loc="upper left",
        bbox_to_anchor=(1.02, 1),
        ncols=_n_columns(styles),
        fontsize=8,
        title_fontsize=9,
        borderaxespad=0,
        handletextpad=0.1,
        columnspacing=0.6,
    )


def _styles(
    layouts: Mapping[str, NDArray[np.float32]],
    assignments: NDArray[np.int64],
    targets: NDArray[Any] | None,
    theme: Theme,
) -> tuple[dict[int, _Style], dict[Any, _Style]]:
    """Of clusters and of classes, both in the order in which they are listed."""
    plane = next(iter(layouts.values()))
    clusters = np.unique(assignments).tolist()
    colours = theme.many_colours
    centres = np.array([plane[assignments == cluster].mean(axis=0) for cluster in clusters])
    times_used = dict.fromkeys(colours, 0)
    by_cluster: dict[int, _Style] = {}
    for cluster, number in zip(clusters, _spread(centres, len(colours)), strict=True):
        colour = colours[number]
        by_cluster[cluster] = (colour, _MARKERS[times_used[colour] % len(_MARKERS)])
        times_used[colour] += 1
    if OUTLIER in by_cluster:
        by_cluster[OUTLIER] = (theme.muted, "X")
    if targets is None:
        return by_cluster, {}
    order = matched_order(targets, assignments)
    by_class: dict[Any, _Style] = {
        name: by_cluster[cluster]
        for name, cluster in zip(
            order.classes[: order.n_matched], order.clusters[: order.n_matched], strict=True
        )
    }
    looks = [(colour, marker) for marker in _MARKERS for colour in colours]
    free = [look for look in looks if look not in by_class.values()] or looks
    for number, name in enumerate(order.classes[order.n_matched :]):
        by_class[name] = free[number % len(free)]
    names = list(by_class)
    return by_cluster, {names[place]: by_class[names[place]] for place in natural_order(names)}


def _spread(centres: NDArray[np.float32], n_colours: int) -> list[int]:
    """A colour for each cluster: a new one, or the one whose clusters are farthest away."""
    chosen: list[int] = []
    for number, centre in enumerate(centres):
        distances = np.linalg.norm(centres[:number] - centre, axis=1)
        nearest = np.full(n_colours, np.inf)
        np.minimum.at(nearest, np.array(chosen, int), distances)
        chosen.append(int(nearest.argmax()))
    return chosen
