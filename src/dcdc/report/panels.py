"""Figures of a run that the page shows one below the other, open to code outside the package.

PANELS.register("confidence", Panel("Confidence", "Histogram of confidences", draw))
"""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from dcdc.registry import Registry
from dcdc.report.clusters import describe_clusters
from dcdc.report.facts import RunFacts
from dcdc.report.sizes_figure import draw_sizes
from dcdc.report.theme import Theme
from dcdc.report.training_figure import draw_training


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
    "sizes",
    Panel(
        "Cluster sizes",
        "Bars: images in each cluster, largest first",
        lambda facts, theme: draw_sizes(describe_clusters(facts), theme),
    ),
)


def panels() -> dict[str, Panel]:
    return {name: PANELS.get(name) for name in PANELS.names()}
