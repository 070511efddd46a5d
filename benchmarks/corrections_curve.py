"""Draws ACC over corrected images, and over images looked at, from records of corrections.py.

python benchmarks/corrections_curve.py docs/runs/corrections docs/figures/corrections.png
"""

import json
import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY = "#808894"  # seen on white and on black
SETS = {"digits": ("#3b8ed0", "digits"), "cifar10-test": ("#e8730c", "CIFAR-10 test part, vectors")}
ORDERS = {"random": ("o-", "at random"), "least-sure": ("s:", "least sure first")}


def draw(records: Path) -> Figure:
    """Medians over the seeds."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for name, (colour, title) in SETS.items():
        for order, (line, words) in ORDERS.items():
            medians = json.loads((records / f"{name}-{order}.json").read_text())["medians"]
            acc = [each["acc"] for each in medians]
            label = f"{title}, {words}"
            for axes, key in zip(panels, ("corrections", "looked_at"), strict=True):
                along = [each.get(key, 0) for each in medians]
                axes.plot(along, acc, line, color=colour, markersize=4, label=label)
    for axes, says in zip(panels, ("images corrected", "images looked at"), strict=True):
        _dress(axes, says)
    panels[0].set_ylabel("ACC of all images", color=GREY)
    panels[0].legend(fontsize=8, frameon=False, labelcolor=GREY, loc="center right")
    return figure


def _dress(axes: Axes, says: str) -> None:
    axes.set_xscale("symlog", linthresh=1)
    ticks = [0, 1, 3, 10, 30, 100, 300, 1000]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlim(-0.1, 1100)
    axes.set_xlabel(says, color=GREY)
    axes.tick_params(colors=GREY, which="both")
    axes.grid(color=GREY, alpha=0.25)
    axes.set_facecolor("none")
    for spine in axes.spines.values():
        spine.set_color(GREY)


if __name__ == "__main__":
    draw(Path(sys.argv[1])).savefig(sys.argv[2], dpi=110, transparent=True)
