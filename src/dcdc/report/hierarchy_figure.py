"""Which clusters join first as their number falls: a tree of clusters, with some images of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import Pictures
from dcdc.metrics.hierarchy import Hierarchy, join_clusters
from dcdc.printable import shown
from dcdc.report.facts import ClusterFacts, RunFacts, RunSample
from dcdc.report.gallery import tile, typical_images
from dcdc.report.themes import Theme

if TYPE_CHECKING:
    from dcdc.run_folder import RunFolder

MOST_ROWS = 40
"""Of more clusters, those that join first share a row."""
_IMAGES = 5
_SIDE = 48  # pixels: the page holds every image twice, on light and on dark paper
_LONGEST_NAME = 24
# Inches.
_ROW, _TILE, _LETTER, _TREE, _EDGE = 0.42, 0.38, 0.082, 3.4, 0.5


@dataclass(frozen=True)
class Row:
    """A leaf of the tree that is drawn."""

    clusters: list[int]
    label: str
    images: list[int]


def hierarchy_of(
    folder: "RunFolder", facts: RunFacts, sample: RunSample | None
) -> Hierarchy | None:
    """As the run keeps it; of an earlier version's run it is made now, and kept."""
    found = folder.read_hierarchy()
    if found is not None or sample is None:
        return found
    made = join_clusters(sample.features, facts.assignments[sample.rows], facts.n_clusters)
    folder.write_hierarchy(made)
    return made


def steps_of(hierarchy: Hierarchy) -> list[tuple[int, list[int], list[int]]]:
    """How many clusters are left after each join, and what joins; the first one first."""
    n_in_use, members = len(hierarchy.joins) + 1, hierarchy.members
    return [
        (
            n_in_use - place,
            members.get(join.first, [join.first]),
            members.get(join.second, [join.second]),
        )
        for place, join in enumerate(hierarchy.joins, start=1)
    ]


def rows_of(
    hierarchy: Hierarchy, clusters: Sequence[ClusterFacts], names: Mapping[int, str]
) -> list[Row]:
    known = {cluster.number: cluster for cluster in clusters}
    place = {cluster: rank for rank, cluster in enumerate(hierarchy.order)}
    groups = hierarchy.groups(min(MOST_ROWS, len(place)))
    found = []
    for group in sorted(groups, key=lambda group: min(place[cluster] for cluster in group)):
        largest = max(group, key=lambda cluster: known[cluster].size)
        size = sum(known[cluster].size for cluster in group)
        name = shown(names.get(largest, ""))[:_LONGEST_NAME]
        label = f"{largest}" + (f" · {name}" if name else "")
        if len(group) > 1:
            label += f" and {len(group) - 1} more"
        found.append(Row(group, f"{label} ({size:,})", typical_images(known[largest], _IMAGES)))
    return found


def draw_hierarchy(
    hierarchy: Hierarchy, rows: Sequence[Row], images: Pictures | None, theme: Theme
) -> Figure:
    pictures = 0.0 if images is None else _IMAGES * (_TILE + 0.04) + 0.1
    label = 0.3 + _LETTER * max(len(row.label) for row in rows)
    width, height = label + pictures + _TREE + 0.2, _ROW * len(rows) + _EDGE
    figure = Figure(figsize=(width, height))
    part = (_ROW * len(rows)) / height
    below = 1 - part
    if images is not None:
        _draw_images(figure, rows, images, (label / width, pictures / width), height)
    left = (label + pictures) / width
    axes = figure.add_axes((left, below, _TREE / width, part))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for place, row in enumerate(rows):
        axes.text(
            (label - 0.08) / width,
            1 - (place + 0.5) * _ROW / height,
            row.label,
            ha="right",
            va="center",
            fontsize=8.5,
            transform=figure.transFigure,
        )
    _draw_tree(axes, hierarchy, rows, theme)
    return figure


def _draw_images(
    figure: Figure,
    rows: Sequence[Row],
    images: Pictures,
    across: tuple[float, float],
    height: float,
) -> None:
    left, width = across
    size = (_TILE / figure.get_figwidth(), _TILE / height)
    for place, row in enumerate(rows):
        bottom = 1 - ((place + 1) * _ROW - (_ROW - _TILE) / 2) / height
        pixels = gather_rows(images, np.array(row.images, dtype=np.int64))
        for column, image in enumerate(pixels):
            spot = figure.add_axes((left + column * width / _IMAGES, bottom, *size))
            spot.imshow(tile(image, _SIDE), interpolation="nearest")
            spot.set_axis_off()


def _draw_tree(axes: Axes, hierarchy: Hierarchy, rows: Sequence[Row], theme: Theme) -> None:
    """From the rows on the left to the one cluster that all become, at how different they are."""
    n_drawn = len(rows) - 1
    first_made = hierarchy.n_clusters + len(hierarchy.joins) - n_drawn
    joins = hierarchy.joins[len(hierarchy.joins) - n_drawn :]
    height = {cluster: float(place) for place, row in enumerate(rows) for cluster in row.clusters}
    for made, members in hierarchy.members.items():
        if made < first_made:  # within a row
            height[made] = height[members[0]]
    differ = [join.distance for join in joins]
    low, span = min(differ), (max(differ) - min(differ)) or 1.0
    edge = low - 0.12 * span
    begins: dict[int, float] = {}
    for place, (join, x) in enumerate(zip(joins, differ, strict=True)):
        ends = (height[join.first], height[join.second])
        for side, y in zip((join.first, join.second), ends, strict=True):
            axes.plot([begins.get(side, edge), x], [y, y], color=theme.colours[0], linewidth=1.4)
        axes.plot([x, x], ends, color=theme.colours[0], linewidth=1.4)
        made = first_made + place
        height[made], begins[made] = sum(ends) / 2, x
        axes.annotate(
            f"{n_drawn - place}",
            (x, height[made]),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=7.5,
        )
    axes.set_xlim(edge, low + 1.08 * span)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("how different the two are; any two images: 1", fontsize=8)
    axes.tick_params(labelsize=7.5)
