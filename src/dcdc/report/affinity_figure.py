"""The paper's two affinity matrices of a run, M over images and N over clusters, beside the ideal.

Where a run is good, M has a block for every class and N is diagonal.

Shapes: v images of the sample's views, K clusters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray

from dcdc.report.facts import RunSample
from dcdc.report.matching import matched_order, short
from dcdc.report.themes import Theme

_EMPTY = 1e-8  # below this length a cluster counts as empty, as it does in training
MOST_NAMED = 20  # labels that fit along a side
_LONGEST_NAME = 20
_COLOURS = "viridis"  # as in the paper, yellow is 1; its lightness alone tells the value


@dataclass(frozen=True, eq=False)
class SortedAffinities:
    sample: NDArray[np.float32]  # v x v: M, original images against perturbed ones
    ideal_sample: NDArray[np.float32]  # 1 within a label
    rows: NDArray[np.int64]  # v: the image of each row of M, as a position in the set
    labels: list[Any]  # in the order of M's blocks
    block_sizes: list[int]  # images of each label
    classes: NDArray[np.float32]  # K x K: N, original clusters against perturbed ones
    ideal_classes: NDArray[np.float32]  # the identity
    clusters: list[int]  # K: the cluster of each row of N
    partners: str = "perturbed images"  # what the columns are of


def sorted_affinities(
    sample: RunSample, targets_or_assignments: ArrayLike, partners: str = "perturbed images"
) -> SortedAffinities:
    """By a label for every image of the set: its class, or its cluster where classes are unknown.

    M is sorted by label, and by cluster within a label. N has the clusters in the order of the
    classes matched to them; those without a class come last.
    """
    labels = np.asarray(targets_or_assignments)
    n_clusters = sample.assign.shape[1]
    order = matched_order(labels[sample.rows], sample.assign.argmax(axis=1))
    clusters = [*order.clusters, *sorted(set(range(n_clusters)) - set(order.clusters))]
    place_of_cluster = np.argsort(clusters)
    place_of_label = {label: place for place, label in enumerate(order.classes)}
    of_views = labels[sample.view_rows].tolist()
    # A view may have a label that the sample lacks, if someone else made the file.
    for label in of_views:
        place_of_label.setdefault(label, len(place_of_label))
    places = np.array([place_of_label[label] for label in of_views])
    by_label = np.lexsort((place_of_cluster[sample.view_assign.argmax(axis=1)], places))
    assign = sample.view_assign[by_label][:, clusters]
    assign_perturbed = sample.view_assign_perturbed[by_label][:, clusters]
    places = places[by_label]
    shown, sizes = np.unique(places, return_counts=True)
    names = list(place_of_label)
    return SortedAffinities(
        sample=_cosine_of_rows(assign, assign_perturbed),
        ideal_sample=(places[:, None] == places).astype(np.float32),
        rows=sample.view_rows[by_label],
        labels=[names[place] for place in shown],
        block_sizes=sizes.tolist(),
        classes=_cosine_of_rows(assign.T, assign_perturbed.T),
        ideal_classes=np.eye(n_clusters, dtype=np.float32),
        clusters=[int(cluster) for cluster in clusters],
        partners=partners,
    )


def _cosine_of_rows(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    return _of_unit_length(left) @ _of_unit_length(right).T


def _of_unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, _EMPTY), np.float32)


def draw_affinities(affinities: SortedAffinities, by_class: bool, _: Theme) -> Figure:
    """M and N, each beside its ideal. `by_class`: the labels are classes, not clusters."""
    figure = Figure(figsize=(7.4 + _name_width(affinities), 7.2), layout="constrained")
    (sample, ideal_sample), (classes, ideal_classes) = figure.subplots(2, 2)
    image = _draw_sample(sample, affinities, affinities.sample, by_class)
    _draw_sample(ideal_sample, affinities, affinities.ideal_sample, by_class, first=False)
    _draw_classes(classes, affinities, affinities.classes)
    _draw_classes(ideal_classes, affinities, affinities.ideal_classes)
    sample.set_title("images (M)", fontsize=10)
    ideal_sample.set_title("images, ideal", fontsize=10)
    classes.set_title(_title_of_classes(by_class), fontsize=10)
    ideal_classes.set_title("clusters, ideal", fontsize=10)
    _scale(figure, image, [sample, ideal_sample, classes, ideal_classes])
    return figure


def draw_affinities_side_by_side(affinities: SortedAffinities, by_class: bool, _: Theme) -> Figure:
    """M and N alone."""
    figure = Figure(figsize=(7.4 + _name_width(affinities), 3.6), layout="constrained")
    sample, classes = figure.subplots(1, 2)
    image = _draw_sample(sample, affinities, affinities.sample, by_class)
    _draw_classes(classes, affinities, affinities.classes)
    sample.set_title("images (M)", fontsize=10)
    classes.set_title(_title_of_classes(by_class), fontsize=10)
    _scale(figure, image, [sample, classes])
    return figure


def _draw_sample(
    axes: Axes,
    affinities: SortedAffinities,
    matrix: NDArray[np.float32],
    by_class: bool,
    *,
    first: bool = True,
) -> AxesImage:
    """The first of a row names its blocks, however long their names are."""
    kind = "class" if by_class else "cluster"
    image = _show(axes, matrix)
    ends = np.cumsum(affinities.block_sizes)
    names = _names(affinities)
    if names:
        _name(axes, ends - np.array(affinities.block_sizes) / 2 - 0.5, names, first)
        axes.set_xticks(ends[:-1] - 0.5, minor=True)
        axes.set_yticks(ends[:-1] - 0.5, minor=True)
        axes.tick_params(which="minor", length=4)
    axes.set_xlabel(f"{affinities.partners}, sorted by {kind}", fontsize=9)
    axes.set_ylabel(f"images, sorted by {kind}", fontsize=9)
    return image


def _draw_classes(axes: Axes, affinities: SortedAffinities, matrix: NDArray[np.float32]) -> None:
    _show(axes, matrix)
    if len(affinities.clusters) <= MOST_NAMED:
        _name(axes, np.arange(len(matrix)), [str(cluster) for cluster in affinities.clusters], True)
    axes.set_xlabel(f"cluster, over {affinities.partners}", fontsize=9)
    axes.set_ylabel("cluster, over images", fontsize=9)


def _names(affinities: SortedAffinities) -> list[str]:
    """Of M's blocks; none where they do not all fit."""
    n_images, sizes = len(affinities.rows), affinities.block_sizes
    if len(sizes) > MOST_NAMED or min(sizes) < n_images / 28:
        return []
    return [short(str(label), _LONGEST_NAME) for label in affinities.labels]


def _name_width(affinities: SortedAffinities) -> float:
    return 0.06 * max(map(len, _names(affinities)), default=0)


def _title_of_classes(by_class: bool) -> str:
    return "clusters (N), in the order of classes" if by_class else "clusters (N)"


def _show(axes: Axes, matrix: NDArray[np.float32]) -> AxesImage:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    return axes.imshow(
        matrix, cmap=_COLOURS, vmin=0, vmax=1, interpolation="nearest", aspect="auto"
    )


def _name(axes: Axes, places: NDArray[Any], names: list[str], first: bool) -> None:
    # Rows and columns have one order: long names are written beside the rows alone.
    fit_below = max(map(len, names)) * 0.075 <= 2.4 / len(names)
    if fit_below:
        axes.set_xticks(places, names, fontsize=8)
    if fit_below or first:
        axes.set_yticks(places, names, fontsize=8)
    axes.tick_params(length=0)


def _scale(figure: Figure, image: AxesImage, axes: list[Axes]) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.6, fraction=0.04, pad=0.02)
    bar.set_label("affinity (cosine of assignments)", fontsize=9)
    bar.ax.tick_params(labelsize=8)
