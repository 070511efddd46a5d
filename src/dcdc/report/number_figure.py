"""How the images settled how many clusters there are: prediction strength over the numbers."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dcdc.metrics.cluster_number import SURE
from dcdc.report.facts import RunFacts
from dcdc.report.figures import legend_above
from dcdc.report.themes import Theme


def draw_number(facts: RunFacts, theme: Theme) -> Figure:
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
