"""How training went: loss terms, scores where there are targets, and clusters in use."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, groupby, pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.report.facts import RunFacts
from dcdc.report.figures import FEW_DOTS, ROUND_STEPS, legend_above
from dcdc.report.themes import Theme

SCORES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}

_SCORE_MARKERS = ("o", "s", "^")
_NAME_SHARE = 0.15  # of the width: what a phase's name takes

_Panel = tuple[float, Callable[[Axes, RunFacts, Theme], None]]  # height in inches, what draws it


def draw_training(facts: RunFacts, theme: Theme) -> Figure:
    """One panel below the other, over the same epochs.

    Phases minimise different losses, so each has a panel of its own over its own epochs; the
    panels below show them all.
    """
    assert facts.history
    phases = split_phases(facts)
    losses: list[_Panel] = [(3.2, _draw_loss)]
    if len(phases) > 1:
        losses = [(2.3, partial(_draw_phase, phase=phase, of=own)) for phase, own in phases]
    shared: list[_Panel] = []
    if facts.series("sure")[0]:
        shared.append((1.6, _draw_sure))
    if any(facts.series(key)[0] for key in SCORES):
        shared.append((2.6, _draw_scores))
    if facts.series("active_clusters")[0]:
        shared.append((1.9, _draw_active_clusters))
    panels = losses + shared
    heights = [height for height, _ in panels]
    figure = Figure(figsize=(6.4, 0.3 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    # Where there is one loss it has the epochs of all.
    below = axes if len(losses) == 1 else axes[len(losses) :]
    for panel_axes in below[:-1]:
        panel_axes.sharex(below[-1])
        panel_axes.tick_params(labelbottom=False)
    for (_, panel), panel_axes in zip(panels, axes, strict=True):
        panel(panel_axes, facts, theme)
        panel_axes.grid(axis="y")
        panel_axes.set_axisbelow(True)
        panel_axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND_STEPS))
    if len(below):
        below[-1].set_xlabel("epoch")
        if len(facts.history) == 1:
            below[-1].set_xticks([facts.history[0]["epoch"]])
        if len(phases) > 1:
            _mark_phases(list(below), phases, theme)
    figure.align_ylabels(axes)
    return figure


def split_phases(facts: RunFacts) -> list[tuple[str, RunFacts]]:
    """The run cut where its loss changes: kinds of phases, each with its own epochs' history.

    A run of one phase does not say which.
    """
    cut = groupby(facts.history, key=lambda line: str(line.get("phase", "")))
    return [(phase, replace(facts, history=list(lines))) for phase, lines in cut]


def phase_name(phase: str, facts: RunFacts) -> str:
    """As the phase calls itself; runs of 0.1.0 did not keep that."""
    return str(facts.phase(phase).get("label", phase.replace("_", " ")))


def _phase_color(phase: str, facts: RunFacts, theme: Theme) -> str:
    return str(facts.phase(phase).get("color", theme.muted))


def _draw_phase(axes: Axes, _: RunFacts, theme: Theme, *, phase: str, of: RunFacts) -> None:
    _draw_loss(axes, of, theme)
    first, last = of.history[0]["epoch"], of.history[-1]["epoch"]
    epochs = f"epoch {first}" if first == last else f"epochs {first} to {last}"
    axes.set_ylabel(f"loss, {phase_name(phase, of)}")
    axes.set_xlabel(epochs)
    if first == last:
        axes.set_xlim(first - 1, last + 1)


def _mark_phases(below: Sequence[Axes], phases: list[tuple[str, RunFacts]], theme: Theme) -> None:
    """Thin lines where a phase ends, if the panels show what came before and after."""
    first, last = below[-1].dataLim.intervalx
    for (ended, before), (began, after) in pairwise(phases):
        place = (before.history[-1]["epoch"] + after.history[0]["epoch"]) / 2
        if not first < place < last:
            continue
        for axes in below:
            axes.axvline(place, color=theme.muted, linewidth=0.8)
        # A name that does not fit on its side of the line is left out.
        needed = _NAME_SHARE * (last - first)
        sides = ((ended, "right", -4, place - first), (began, "left", 4, last - place))
        for name, side, offset, width in sides:
            if width >= needed:
                below[-1].annotate(
                    phase_name(name, before),
                    (place, 0),
                    (offset, 4),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    ha=side,
                    fontsize=8,
                    color=_phase_color(name, before, theme),
                )


def _draw_loss(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    terms = dict.fromkeys(key for line in facts.history for key in line if "/" in key)
    # A phase with one term alone has it as its loss too.
    _plot(axes, facts, "loss", "total" if terms else "loss", colour=theme.ink, width=2)
    colours = cycle(theme.colours)
    colour_of: dict[str, str] = {}
    for key in terms:
        head, _, term = key.partition("/")
        if term not in colour_of:
            colour_of[term] = next(colours)
        label = f"{term.replace('_', ' ')}, {_head_name(head)}"
        # Same term, same colour; the heads differ in line and dot.
        over = head == "over_clustering_head"
        _plot(axes, facts, key, label, colour=colour_of[term], hollow=over)
    axes.set_ylabel("loss (mean of the epoch)")
    legend_above(axes, n_columns=2)


def _draw_scores(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    lowest = 0.0
    for (key, label), colour, marker in zip(
        SCORES.items(), theme.colours, _SCORE_MARKERS, strict=False
    ):
        _plot(axes, facts, key, label, colour=colour, marker=marker)
        lowest = min([lowest, *facts.series(key)[1]])  # ARI falls below 0 for the worst
    axes.set_ylim(lowest - 0.02, 1.02)
    axes.set_ylabel("score against the targets")
    legend_above(axes, n_columns=3)


def _draw_sure(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    _plot(axes, facts, "sure", "images sure enough for a self-label", colour=theme.colours[0])
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("share")
    legend_above(axes, n_columns=1)


def _draw_active_clusters(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    axes.axhline(facts.n_clusters, color=theme.muted, linestyle=":", label="asked for")
    _plot(axes, facts, "active_clusters", "with at least one image", colour=theme.colours[0])
    axes.set_ylim(0, facts.n_clusters * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=ROUND_STEPS))
    axes.set_ylabel("clusters")
    legend_above(axes, n_columns=2)


def _plot(
    axes: Axes,
    facts: RunFacts,
    key: str,
    label: str,
    *,
    colour: str,
    marker: str = "o",
    hollow: bool = False,
    width: float = 1.5,
) -> None:
    epochs, values = facts.series(key)
    if not epochs:
        return
    axes.plot(
        epochs,
        values,
        color=colour,
        label=label,
        linestyle="--" if hollow else "-",
        linewidth=width,
        marker=marker if len(epochs) <= FEW_DOTS else None,
        markersize=4,
        markerfacecolor=axes.get_facecolor() if hollow else colour,
    )


def _head_name(head: str) -> str:
    return head.replace("over_clustering", "over-clustering").replace("_", " ")
