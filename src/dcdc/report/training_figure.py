"""How training went: loss terms, scores where there are targets, and clusters in use."""

from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.report.facts import RunFacts
from dcdc.report.theme import Theme

SCORES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"}

_FEW_EPOCHS = 40  # up to here each epoch gets a dot; one epoch alone would draw no line
_SCORE_MARKERS = ("o", "s", "^")
_ROUND_STEPS = [1, 2, 5, 10]


def draw_training(facts: RunFacts, theme: Theme) -> Figure:
    """One panel below the other, over the same epochs."""
    assert facts.history
    has_scores = any(facts.series(key)[0] for key in SCORES)
    has_active = bool(facts.series("active_clusters")[0])
    panels = [_draw_loss]
    if has_scores:
        panels.append(_draw_scores)
    if has_active:
        panels.append(_draw_active_clusters)
    heights = [{_draw_loss: 3.2, _draw_scores: 2.6}.get(panel, 1.9) for panel in panels]
    figure = Figure(figsize=(6.4, 0.3 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, panel_axes in zip(panels, axes, strict=True):
        panel(panel_axes, facts, theme)
        panel_axes.grid(axis="y")
        panel_axes.set_axisbelow(True)
    axes[-1].set_xlabel("epoch")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, steps=_ROUND_STEPS))
    if len(facts.history) == 1:
        axes[-1].set_xticks([facts.history[0]["epoch"]])
    figure.align_ylabels(axes)
    return figure


def _draw_loss(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    _plot(axes, facts, "loss", "total", colour=theme.ink, width=2)
    colours = cycle(theme.colours)
    colour_of: dict[str, str] = {}
    for key in dict.fromkeys(key for line in facts.history for key in line if "/" in key):
        head, _, term = key.partition("/")
        if term not in colour_of:
            colour_of[term] = next(colours)
        label = f"{term.replace('_', ' ')}, {_head_name(head)}"
        # Same term, same colour; the heads differ in line and dot.
        over = head == "over_clustering_head"
        _plot(axes, facts, key, label, colour=colour_of[term], hollow=over)
    axes.set_ylabel("loss (mean of the epoch)")
    _legend_above(axes, n_columns=2)


def _draw_scores(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    lowest = 0.0
    for (key, label), colour, marker in zip(
        SCORES.items(), theme.colours, _SCORE_MARKERS, strict=False
    ):
        _plot(axes, facts, key, label, colour=colour, marker=marker)
        lowest = min([lowest, *facts.series(key)[1]])  # ARI falls below 0 for the worst
    axes.set_ylim(lowest - 0.02, 1.02)
    axes.set_ylabel("score against the targets")
    _legend_above(axes, n_columns=3)


def _draw_active_clusters(axes: Axes, facts: RunFacts, theme: Theme) -> None:
    axes.axhline(facts.n_clusters, color=theme.muted, linestyle=":", label="asked for")
    _plot(axes, facts, "active_clusters", "with at least one image", colour=theme.colours[0])
    axes.set_ylim(0, facts.n_clusters * 1.08)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=_ROUND_STEPS))
    axes.set_ylabel("clusters")
    _legend_above(axes, n_columns=2)


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
        marker=marker if len(epochs) <= _FEW_EPOCHS else None,
        markersize=4,
        markerfacecolor=axes.get_facecolor() if hollow else colour,
    )


def _legend_above(axes: Axes, n_columns: int) -> None:
    # Above the axes, where no curve can pass behind it.
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=n_columns, fontsize=9, borderaxespad=0.2
    )


def _head_name(head: str) -> str:
    return head.replace("over_clustering", "over-clustering").replace("_", " ")
