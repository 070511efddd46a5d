"""Methods side by side as figures: scores, agreement, and time against quality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from dcdc.report.confusion_figure import Confusion
from dcdc.report.matching import short
from dcdc.report.themes import Theme
from dcdc.report.training_figure import SCORES

_NAMED_CLASSES = 20
_QUALITIES = ("acc", "nmi")
_SHORTEST = 0.01  # seconds: a logarithm takes no 0
_PLACES = (
    *((7, 0), (-7, 0), (0, 8), (0, -8), (7, 8), (-7, 8), (7, -8), (-7, -8)),
    *((7, 16), (-7, 16), (7, -16), (-7, -16)),
)
"""In points from its dot, where a name may stand: the first that is free."""
_LETTER, _LINE = 4.8, 9.0
"""Points that a name of size 8 takes: along by letters, and in height."""


@dataclass(frozen=True)
class MethodScores:
    title: str
    scores: Mapping[str, Sequence[float]]
    """By the keys of SCORES, a value for each seed; empty for what was not scored."""
    published: Mapping[str, float]
    seconds: float | None = None
    """Of its own, the mean over seeds."""

    def mean(self, key: str) -> float | None:
        values = self.scores.get(key)
        return sum(values) / len(values) if values else None


def draw_methods(methods: Sequence[MethodScores], theme: Theme) -> Figure:
    """A panel for each score, the methods from above in their order."""
    figure = Figure(figsize=(8.4, 1.2 + 0.26 * len(methods)), layout="constrained")
    panels = figure.subplots(1, len(SCORES), sharey=True)
    places = range(len(methods))
    for axes, (key, name) in zip(panels, SCORES.items(), strict=True):
        seeds = [
            (place, value)
            for place, method in enumerate(methods)
            for value in method.scores.get(key, ())
        ]
        means = [method.mean(key) or 0.0 for method in methods]
        published = [
            (place, method.published[key])
            for place, method in enumerate(methods)
            if key in method.published
        ]
        axes.barh(places, means, 0.6, color=theme.colours[0], alpha=0.45, label="mean")
        axes.plot(*_points(seeds), "o", color=theme.colours[0], markersize=4, label="each seed")
        if published:
            axes.plot(
                *_points(published),
                "D",
                color=theme.colours[1],
                fillstyle="none",
                markersize=6,
                label="published",
            )
        axes.set_xlim(left=0)
        axes.set_xlabel(name)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
    panels[0].set_yticks(places, [short(method.title) for method in methods])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=9)
    return figure


def _points(found: Sequence[tuple[int, float]]) -> tuple[list[float], list[int]]:
    """Values along, places down."""
    return [value for _, value in found], [place for place, _ in found]


def draw_agreement(names: Sequence[str], shares: NDArray[np.float64], theme: Theme) -> Figure:
    """m x m: the share of the images that two methods answer alike."""
    side = 1.4 + 0.3 * len(names)
    figure = Figure(figsize=(side + 1.2, side), layout="constrained")
    axes = figure.subplots()
    colours = LinearSegmentedColormap.from_list("share", [theme.paper, theme.colours[0]])
    axes.imshow(shares, cmap=colours, vmin=0, vmax=1)
    labels = [short(name) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), labels, fontsize=8)
    for (row, column), share in np.ndenumerate(shares):
        if row != column:
            colour = theme.paper if share > 0.5 else theme.ink
            text = f"{100 * share:.0f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    return figure


def draw_confusions(confusions: Sequence[tuple[str, Confusion]], theme: Theme) -> Figure:
    """A panel for each method: classes down, its clusters across in the order of the classes that
    they stand for."""
    n_columns = min(4, len(confusions))
    n_rows = -(-len(confusions) // n_columns)
    figure = Figure(figsize=(8.4, 0.2 + 2.2 * n_rows), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    colours = LinearSegmentedColormap.from_list("share", [theme.paper, theme.colours[0]])
    for axes, (name, confusion) in zip(panels, confusions, strict=False):
        shares = confusion.table / confusion.table.sum(axis=1, keepdims=True)
        axes.imshow(shares, cmap=colours, vmin=0, vmax=1, aspect="auto")
        axes.set_title(short(name), fontsize=9)
        n_classes, n_clusters = shares.shape
        labels = [short(each, 12) for each in confusion.classes]
        few = n_classes <= _NAMED_CLASSES
        axes.set_yticks(range(n_classes) if few else [], labels if few else [], fontsize=6)
        axes.set_xticks([])
        axes.spines[:].set_visible(True)
        if confusion.n_matched < n_clusters:
            axes.axvline(confusion.n_matched - 0.5, color=theme.ink, linewidth=0.8)
    for axes in panels[len(confusions) :]:
        axes.set_axis_off()
    return figure


def draw_time_and_quality(methods: Sequence[MethodScores], theme: Theme) -> Figure:
    """Of the methods that have both: up is better, left is faster."""
    figure = Figure(figsize=(6.4, 3.6 * len(_QUALITIES)), layout="constrained")
    panels = figure.subplots(len(_QUALITIES), sharex=True)
    dots = [_dots(methods, key) for key in _QUALITIES]
    for axes, key, found in zip(panels, _QUALITIES, dots, strict=True):
        times, scores = ([place[at] for place in found.values()] for at in (0, 1))
        axes.plot(times, scores, "o", color=theme.colours[0], markersize=5)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:,.9g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.margins(x=0.2, y=0.08)
        axes.set_ylabel(SCORES[key])
        axes.grid()
        axes.set_axisbelow(True)
    panels[-1].set_xlabel("seconds of the method")
    figure.draw_without_rendering()  # says where the dots are
    for axes, found in zip(panels, dots, strict=True):
        _name_dots(axes, found)
    return figure


def _dots(methods: Sequence[MethodScores], key: str) -> dict[str, tuple[float, float]]:
    """Seconds and score, by method."""
    return {
        method.title: (max(method.seconds, _SHORTEST), mean)
        for method in methods
        if method.seconds is not None and (mean := method.mean(key)) is not None
    }


def _name_dots(axes: Axes, dots: Mapping[str, tuple[float, float]]) -> None:
    """Each name at the place beside its dot where it covers least."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = {
        title: axes.transData.transform(place) * 72 / figure.dpi for title, place in dots.items()
    }
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in points.values()]
    for title, (x, y) in sorted(points.items(), key=lambda point: -point[1][1]):
        name = short(title)
        boxes = [_box(x + dx, y + dy, dx, len(name)) for dx, dy in _PLACES]
        covered = [sum(_cross(box, other) for other in taken) for box in boxes]
        best = covered.index(min(covered))
        dx, dy = _PLACES[best]
        taken.append(boxes[best])
        axes.annotate(
            name,
            dots[title],
            (dx, dy),
            textcoords="offset points",
            ha="left" if dx > 0 else "right" if dx < 0 else "center",
            va="center",
            fontsize=8,
        )


_Box = tuple[float, float, float, float]


def _box(x: float, y: float, side: float, n_letters: int) -> _Box:
    """What a name takes that begins, ends or has its middle there."""
    width = _LETTER * n_letters
    left = x if side > 0 else x - width if side < 0 else x - width / 2
    return left, y - _LINE / 2, left + width, y + _LINE / 2


def _cross(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
