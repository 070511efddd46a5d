"""The tree of clusters: its rows, its joins in words, and where the run keeps it."""

import re

import numpy as np
import pytest

from dcdc.metrics.hierarchy import Hierarchy, Join
from dcdc.report import hierarchy_figure
from dcdc.report.facts import describe_clusters
from dcdc.report.hierarchy_figure import draw_hierarchy, rows_of, steps_of
from dcdc.report.page import write_figures_and_page
from dcdc.report.themes import LIGHT

TREE = Hierarchy(4, (Join(3, 1, 0.1, 5), Join(0, 4, 0.6, 8), Join(2, 5, 1.1, 12)))


@pytest.fixture
def facts(make_facts):
    return make_facts([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3], n_clusters=4)


def test_rows_are_in_an_order_that_no_join_crosses(facts):
    rows = rows_of(TREE, describe_clusters(facts), {3: "cats"})
    assert [row.label for row in rows] == ["2 (4)", "0 (3)", "3 · cats (3)", "1 (2)"]
    assert [row.clusters for row in rows] == [[2], [0], [3], [1]]
    assert facts.assignments[rows[0].images].tolist() == [2, 2, 2, 2]


def test_of_many_clusters_those_that_join_first_share_a_row(facts, monkeypatch):
    monkeypatch.setattr(hierarchy_figure, "MOST_ROWS", 3)
    rows = rows_of(TREE, describe_clusters(facts), {})
    assert [row.label for row in rows] == ["2 (4)", "0 (3)", "3 and 1 more (5)"]
    drawn = draw_hierarchy(TREE, rows, None, LIGHT).axes[0]
    assert [text.get_text() for text in drawn.texts][-2:] == ["2", "1"]


def test_lines_of_the_tree_end_where_clusters_join(facts):
    rows = rows_of(TREE, describe_clusters(facts), {})
    lines = [line.get_xydata() for line in draw_hierarchy(TREE, rows, None, LIGHT).axes[0].lines]
    upright = [line for line in lines if line[0, 0] == line[1, 0]]
    assert [line[0, 0] for line in upright] == pytest.approx([0.1, 0.6, 1.1])
    assert [sorted(line[:, 1]) for line in upright] == [[2, 3], [1, 2.5], [0, 1.75]]


def test_steps_say_what_joins_and_how_many_are_left():
    assert steps_of(TREE) == [(3, [3], [1]), (2, [0], [3, 1]), (1, [2], [0, 3, 1])]


def test_the_page_has_the_tree_and_an_earlier_run_gets_one(
    facts, make_sample, write_run, flat_images, tmp_path
):
    folder = write_run(tmp_path / "run", facts)
    assert "Which clusters join first" not in write_figures_and_page(folder, None).read_text()
    folder.write_sample(vars(make_sample(facts.assignments.tolist(), n_clusters=4)))
    page = write_figures_and_page(folder, flat_images(facts)).read_text()
    assert f"dcdc fit --run {folder.path} --clusters NUMBER" in page
    kept = folder.read_hierarchy()
    assert kept.is_whole
    assert sorted(kept.order) == [0, 1, 2, 3]
    told = re.findall(r'<li value="(\d)">(.*) join</li>', page)
    assert [int(left) for left, _ in told] == [3, 2, 1]
    drawn = (folder.figures / "hierarchy.svg").read_text()
    assert drawn.count("<image") == min(np.bincount(facts.assignments).sum(), 4 * 5)


def test_two_clusters_have_nothing_to_choose(make_facts, make_sample, write_run, tmp_path):
    facts = make_facts([0, 1, 0, 1], n_clusters=2)
    folder = write_run(tmp_path / "run", facts)
    folder.write_sample(vars(make_sample([0, 1, 0, 1], n_clusters=2)))
    assert "Which clusters join first" not in write_figures_and_page(folder, None).read_text()
