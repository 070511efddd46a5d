"""Figures of a run that the page shows one below the other, open to code outside the package.

PANELS.register("confidence", Panel("Confidence", "Histogram of confidences", draw))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.metrics.cluster_number import SURE
from dcdc.registry import Registry
from dcdc.report.facts import ClusterFacts, RunFacts, describe_clusters
from dcdc.report.figures import ROUND_STEPS, legend_above
from dcdc.report.themes import Theme
from dcdc.report.training_figure import draw_training

_LABELLED = 30  # up to here the number of every cluster fits below its bar
_FEW = 20


def draw_sizes(clusters: list[ClusterFacts], theme: Theme) -> Figure:
    """Bars, largest first; with targets, split into the cluster's main class and the rest."""
    sizes = [cluster.size for cluster in clusters]
    ranks = range(1, len(clusters) + 1)
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    few = len(clusters) <= _FEW
    # Bars that touch show seams unless their edges are drawn too.
    width, edge = (0.8, 0.0) if few else (1.0, 0.6)
    layers: list[tuple[list[int], str | None]] = [(sizes, None)]
    if any(cluster.purity is not None for cluster in clusters):
        of_main_class = [cluster.n_of_main_class for cluster in clusters]
        others = [cluster.size - cluster.n_of_main_class for cluster in clusters]
        layers = [(of_main_class, "the cluster's main class"), (others, "other classes")]
    below = [0] * len(clusters)
    for (heights, label), colour in zip(layers, theme.colours, strict=False):
        look: dict[str, Any] = {"color": colour, "edgecolor": colour, "linewidth": edge}
        axes.bar(ranks, heights, width, bottom=below, label=label, **look)
        below = heights
    axes.axhline(
        sum(sizes) / len(sizes), color=theme.ink, linestyle=":", linewidth=1, label="mean size"
    )
    if _counts_fit(sizes):
        for rank, size in zip(ranks, sizes, strict=True):
            count = axes.annotate(
                str(size), (rank, size), (0, 3), textcoords="offset points", ha="center", fontsize=8
            )
            # The line of the mean stops short of the figures it would cross.
            count.set_bbox({"facecolor": theme.paper, "edgecolor": "none", "pad": 0.5})
    if len(clusters) <= _LABELLED:
        numbers = [str(cluster.number) for cluster in clusters]
        axes.set_xticks(ranks, numbers, fontsize=10 if few else 8)
        axes.set_xlabel("cluster, largest first")
    else:
        axes.set_xlabel("rank of the cluster, largest first")
    axes.set_xlim(0.3, len(clusters) + 0.7)
    axes.set_ylim(0, max(sizes) * 1.1)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=ROUND_STEPS))
    axes.set_ylabel("images")
    legend_above(axes, n_columns=3)
    return figure


def _counts_fit(sizes: list[int]) -> bool:
    """Whether the figures above the bars stay clear of each other."""
    inches = 0.07 * len(str(max(sizes))) + 0.08
    return inches * len(sizes) <= 5.6


def draw_number(facts: RunFacts, theme: Theme) -> Figure:
    """How the images settled how many clusters there are: prediction strength over the numbers."""
    assert facts.number is not None
    strengths = {int(number): float(s) for number, s in facts.number["strengths"].items()}
    taken = int(facts.number["number"])
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(list(strengths), list(strengths.values()), color=theme.colours[0], marker=".")
    axes.axhline(SURE, color=theme.ink, linestyle=":", linewidth=1, label="well separated")
    how = "taken" if facts.number["is_settled"] else "taken, but the images do not settle it"
    axes.scatter(
        [taken], [strengths[taken]], s=80, color=theme.colours[1], zorder=3, label=f"{taken}: {how}"
    )
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("number of clusters")
    axes.set_ylabel("prediction strength")
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    legend_above(axes, n_columns=2)
    return figure


@dataclass(frozen=True)
class Panel:
    title: str
    says: str
    """What the figure shows, for those who do not see it."""
    draw: Callable[[RunFacts, Theme], Figure]
    fits: Callable[[RunFacts], bool] = lambda _: True
    """Whether the run has what the figure needs; else the panel is left out."""
    instead: str = ""
    """What to say where it is left out; nothing: not even its title is shown."""


PANELS: Registry[Panel] = Registry("report panel", "dcdc.panels", {})
PANELS.register(
    "training",
    Panel(
        "Training",
        "Curves over epochs: loss terms, scores where known, active clusters",
        draw_training,
        fits=lambda facts: bool(facts.history),
        instead="The run folder holds no history of the training.",
    ),
)
PANELS.register(
    "number",
    Panel(
        "How many clusters",
        "Curve: prediction strength by number of clusters, and the number that was taken",
        draw_number,
        fits=lambda facts: facts.number is not None,
    ),
)
PANELS.register(
    "sizes",
    Panel(
        "Cluster sizes",
        "Bars: images in each cluster, largest first",
        lambda facts, theme: draw_sizes(describe_clusters(facts), theme),
    ),
)


def panels() -> dict[str, Panel]:
    return {name: PANELS.get(name) for name in PANELS.names()}
