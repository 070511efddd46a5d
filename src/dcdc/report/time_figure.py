"""Time against quality: a dot for each method, with its name beside it."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from dcdc.report.matching import short
from dcdc.report.method_figures import MethodScores
from dcdc.report.themes import Theme
from dcdc.report.training_figure import SCORES

_QUALITIES = ("acc", "nmi")
_SHORTEST = 0.01  # seconds: a logarithm takes no 0
_PLACES = (
    *((7, 0), (-7, 0), (0, 8), (0, -8), (7, 8), (-7, 8), (7, -8), (-7, -8)),
    *((7, 16), (-7, 16), (7, -16), (-7, -16)),
)
"""In points from its dot, where a name may stand: the first that is free."""
_LETTER, _LINE = 4.8, 9.0
"""Points that a name of size 8 takes: along by letters, and in height."""


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
