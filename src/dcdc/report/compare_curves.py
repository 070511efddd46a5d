"""Runs side by side as curves: scores, losses, cluster sizes."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.report.compared_runs import ComparedRun
from dcdc.report.figures import FEW_DOTS, ROUND_STEPS, legend_above
from dcdc.report.matching import short
from dcdc.report.themes import Theme
from dcdc.report.training_figure import SCORES, split_phases

_LINES = ("-", "--", ":", "-.")


def draw_curves(runs: Sequence[ComparedRun], theme: Theme) -> Figure:
    """Scores over epochs where any run has them, else the loss."""
    keys = [key for key in SCORES if any(run.facts.series(key)[0] for run in runs)]
    figure = Figure(figsize=(6.4, 0.3 + 2.4 * (len(keys) or 1)), layout="constrained")
    axes = figure.subplots(len(keys) or 1, sharex=True, squeeze=False)[:, 0]
    # A look is a run's in every figure, so those without a history keep theirs.
    looks = zip(runs, _looks(theme), strict=False)
    trained = [(run, look) for run, look in looks if run.facts.history]
    for panel, key in zip(axes, keys or ["loss"], strict=True):
        for run, (colour, line) in trained:
            _curve(panel, run, key, colour, line)
        panel.set_ylabel(SCORES.get(key, "loss (mean of the epoch)"))
        panel.grid(axis="y")
        panel.set_axisbelow(True)
    axes[-1].set_xlabel("epoch")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND_STEPS))
    _name_runs_above(axes[0], [run for run, _ in trained])
    return figure


def draw_losses(runs: Sequence[ComparedRun], theme: Theme) -> Figure:
    """A panel for each run that has any, over its own epochs and in its own units: losses of other
    methods cannot be compared."""
    trained = [run for run in runs if run.facts.series("loss")[0]]
    n_columns = min(4, len(trained))
    n_rows = -(-len(trained) // n_columns)
    figure = Figure(figsize=(8.4, 0.2 + 1.5 * n_rows), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for axes, run in zip(panels, trained, strict=False):
        _curve(axes, run, "loss", theme.colours[0], "-")
        axes.set_title(short(run.name), fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=ROUND_STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.tick_params(labelsize=7)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
    for axes in panels[len(trained) :]:
        axes.set_axis_off()
    figure.supxlabel("epoch", fontsize=9)
    return figure


def draw_sizes(runs: Sequence[ComparedRun], theme: Theme) -> Figure:
    """A run's clusters from the largest to the smallest, as shares of its images."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for run, (colour, line) in zip(runs, _looks(theme), strict=False):
        shares = np.array(run.sizes) / sum(run.sizes)
        ranks = np.arange(1, len(shares) + 1)
        marker = "o" if len(shares) <= FEW_DOTS else None
        axes.plot(
            ranks, shares, color=colour, linestyle=line, marker=marker, markersize=4, label=run.name
        )
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND_STEPS))
    axes.set_xlabel("rank of the cluster, largest first")
    axes.set_ylabel("share of the images")
    _name_runs_above(axes, runs)
    return figure


def _curve(axes: Axes, run: ComparedRun, key: str, colour: str, line: str) -> None:
    # A curve breaks where the loss becomes another one; scores go on.
    parts = [own for _, own in split_phases(run.facts)] if key == "loss" else [run.facts]
    label: str | None = run.name
    for part in parts:
        epochs, values = part.series(key)
        marker = "o" if len(run.facts.history) <= FEW_DOTS else None
        axes.plot(
            epochs, values, color=colour, linestyle=line, marker=marker, markersize=4, label=label
        )
        label = None


def _looks(theme: Theme) -> Any:
    """Colours and lines, for as many runs as there are."""
    return cycle([(colour, line) for line in _LINES for colour in theme.colours])


def _name_runs_above(axes: Axes, runs: Sequence[ComparedRun]) -> None:
    names = [short(run.name, 40) for run in runs]
    handles, _ = axes.get_legend_handles_labels()
    columns = max(1, min(len(names), int(6 / (0.5 + 0.085 * max(map(len, names))))))
    legend_above(axes, columns, handles, names)
