import pytest

from dcdc.report.methods_figure import MethodScores, draw_methods
from dcdc.report.theme import LIGHT, drawing_with


def test_means_seeds_and_published_figures_are_where_they_belong():
    methods = [
        MethodScores("A", {"acc": [0.2, 0.4], "nmi": [0.1, 0.1]}, {"acc": 0.25}),
        MethodScores("B", {}, {}),
        MethodScores("C", {"acc": [0.9]}, {"acc": 0.7}),
    ]
    with drawing_with(LIGHT):
        figure = draw_methods(methods, LIGHT)
        figure.draw_without_rendering()
    acc, nmi, _ = figure.axes
    assert [axes.get_xlabel() for axes in figure.axes] == ["ACC", "NMI", "ARI"]
    assert [bar.get_width() for bar in acc.patches] == pytest.approx([0.3, 0, 0.9])
    seeds, published = acc.lines
    assert (list(seeds.get_xdata()), list(seeds.get_ydata())) == ([0.2, 0.4, 0.9], [0, 0, 2])
    assert (list(published.get_xdata()), list(published.get_ydata())) == ([0.25, 0.7], [0, 2])
    assert len(nmi.lines) == 1  # nothing was published
    assert [text.get_text() for text in acc.get_yticklabels()] == ["A", "B", "C"]
    low, high = acc.get_ylim()
    assert low > high  # the first method is on top
