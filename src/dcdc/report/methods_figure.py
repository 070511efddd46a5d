"""Scores of methods: a bar for the mean, a point for every seed, a mark where it was published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from dcdc.report.theme import Theme
from dcdc.report.training_figure import SCORES


@dataclass(frozen=True)
class MethodScores:
    title: str
    scores: Mapping[str, Sequence[float]]
    """By the keys of SCORES, a value for each seed; empty for what was not scored."""
    published: Mapping[str, float]


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
        means = [
            sum(values) / len(values) if (values := method.scores.get(key)) else 0.0
            for method in methods
        ]
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
    panels[0].set_yticks(places, [method.title for method in methods])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=9)
    return figure


def _points(found: Sequence[tuple[int, float]]) -> tuple[list[float], list[int]]:
    """Values along, places down."""
    return [value for _, value in found], [place for place, _ in found]
