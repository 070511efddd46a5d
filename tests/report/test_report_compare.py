from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.report import write_comparison
from dcdc.report.compare import Overview, write_runs
from dcdc.report.compare_curves import draw_curves, draw_losses, draw_sizes
from dcdc.report.compared_runs import (
    ComparedRun,
    config_differences,
    data_warnings,
    method_settings,
    read_runs,
    table_rows,
)
from dcdc.report.confusion_figure import match
from dcdc.report.disagreement import shown_images
from dcdc.report.figures import drawing_with
from dcdc.report.method_figures import (
    MethodScores,
    draw_agreement,
    draw_confusions,
    draw_methods,
    draw_time_and_quality,
)
from dcdc.report.themes import LIGHT

EVIL = """<script>alert("x")</script>' onerror='alert(1)" & co"""


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def drawn(draw, runs):
    with drawing_with(LIGHT):
        figure = draw(runs, LIGHT)
        figure.draw_without_rendering()
    return figure


@pytest.fixture
def facts(make_facts):
    return make_facts([0, 1, 1, 0, 2], n_clusters=3, targets=list("abbab"))


@pytest.fixture
def runs(facts):
    """Two runs of the same images, the second a little better and with another temperature."""
    config = facts.config | {"heads.temperature": 0.125, "train.seed": 8}
    scores = {"acc": 0.9, "nmi": 0.1, "ari": 0.5}
    other = replace(facts, config=config, metrics=facts.metrics | {"scores": scores, "seed": 8})
    return [ComparedRun("one", facts, None), ComparedRun("two", other, None)]


def test_the_table_has_a_row_for_each_run_and_marks_the_best(runs):
    one, two = table_rows(runs)
    assert [text for text, _ in two] == [
        *("two", "0.900", "0.100", "0.500", "5", "3", "4", "1:23 min"),
        *("cpu (x86_64, 2 threads)", "8"),
    ]
    assert [best for _, best in two[1:4]] == [True, False, False]
    assert [best for _, best in one[1:4]] == [False, True, True]


def test_of_scores_that_differ_by_rounding_both_are_marked(runs):
    one, two = runs
    less = {
        key: float(np.nextafter(value, 0)) for key, value in one.facts.metrics["scores"].items()
    }
    same = replace(two.facts, metrics=two.facts.metrics | {"scores": less})
    marks = [[best for _, best in row[1:4]] for row in table_rows([one, replace(two, facts=same)])]
    assert marks == [[True] * 3] * 2


def test_a_run_without_targets_has_empty_cells_and_empty_clusters_are_told(make_facts, runs):
    blind = ComparedRun("blind", make_facts([0, 0, 0], n_clusters=2), None)
    *_, row = table_rows([*runs, blind])
    assert [text for text, _ in row][1:6] == ["", "", "", "3", "2 (1 in use)"]
    assert blind.sizes == [3, 0]


def test_only_what_differs_in_the_configs_is_listed(runs):
    assert config_differences(runs) == [("heads.temperature", ["0.5", "0.125"])]
    assert config_differences([runs[0], runs[0]]) == []
    older = {key: value for key, value in runs[1].facts.config.items() if "size" not in key}
    old = replace(runs[0], facts=replace(runs[0].facts, config=older | {"heads.temperature": 0.5}))
    assert all(values[1] == "" for _, values in config_differences([runs[0], old]))


def test_runs_of_the_same_images_are_not_warned_of(runs):
    assert data_warnings(runs) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"names": list("abcdefg")}, "different data: 5 and 7 images"),
        ({"names": list("vwxyz")}, "their images have other names"),
        ({"targets": None}, "two had no targets"),
        ({"targets": np.array(list("aaaab"))}, "different classes"),
    ],
)
def test_other_data_is_warned_of(runs, changes, told):
    one, two = runs
    changed = replace(two, facts=replace(two.facts, **changes))
    warnings = data_warnings([one, two, changed])
    assert len(warnings) == 1
    assert told in warnings[0]


def test_other_sizes_of_the_same_images_are_warned_of(runs):
    one, two = runs
    metrics = two.facts.metrics | {"image_shape": [32, 32, 1]}
    changed = replace(two, facts=replace(two.facts, metrics=metrics))
    assert data_warnings([one, changed]) == ["one and two saw the images at different sizes."]


def test_curves_are_scores_where_known(runs):
    figure = drawn(draw_curves, runs)
    assert [axes.get_ylabel() for axes in figure.axes] == ["ACC", "NMI", "ARI"]
    acc = figure.axes[0]
    assert [line.get_label() for line in acc.lines] == ["one", "two"]
    assert list(acc.lines[0].get_ydata()) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert len({line.get_color() for line in acc.lines}) == 2
    assert [text.get_text() for text in acc.get_legend().texts] == ["one", "two"]


def test_curves_are_losses_elsewhere_and_break_between_phases(make_facts):
    facts = make_facts([0, 1], n_clusters=2)
    for line in facts.history[:2]:
        line["phase"] = "contrast"
    for line in facts.history[2:]:
        line["phase"] = "heads"
    plain = make_facts([0, 1], n_clusters=2)
    figure = drawn(draw_curves, [ComparedRun("a", facts, None), ComparedRun("b", plain, None)])
    (axes,) = figure.axes
    assert axes.get_ylabel() == "loss (mean of the epoch)"
    assert [list(line.get_xdata()) for line in axes.lines] == [[1, 2], [3, 4], [1, 2, 3, 4]]
    assert axes.lines[0].get_color() == axes.lines[1].get_color()
    assert [text.get_text() for text in axes.get_legend().texts] == ["a", "b"]


def test_a_run_without_a_history_has_no_curve_and_leaves_the_others_their_looks(runs):
    silent = replace(runs[0], facts=replace(runs[0].facts, history=[]))
    axes = drawn(draw_curves, [silent, runs[1]]).axes[0]
    assert [text.get_text() for text in axes.get_legend().texts] == ["two"]
    assert axes.lines[0].get_color() == drawn(draw_sizes, runs).axes[0].lines[1].get_color()


def test_sizes_are_shares_largest_first(runs, make_facts):
    many = ComparedRun("many", make_facts(list(range(200)), n_clusters=200), None)
    axes = drawn(draw_sizes, [*runs, many]).axes[0]
    assert list(axes.lines[0].get_ydata()) == pytest.approx([0.4, 0.4, 0.2])
    assert len(axes.lines[2].get_xdata()) == 200


def test_the_looks_of_a_dozen_runs_differ(runs):
    dozen = [replace(runs[0], name=f"a-run-with-a-long-name-{n}") for n in range(12)]
    figure = drawn(draw_sizes, dozen)
    axes = figure.axes[0]
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 12
    box = axes.get_legend().get_window_extent()
    assert box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height + 1


def test_the_page_is_self_contained_and_says_it_all(facts, runs, write_run, make_sample, tmp_path):
    first = write_run(tmp_path / "first", facts)
    first.write_sample(vars(make_sample(facts.assignments, n_clusters=3)))
    second = write_run(tmp_path / "second", replace(runs[1].facts, names=list("abcde")))
    path = write_comparison([first, second], tmp_path / "out" / "page.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "iframe", "object", "a"})
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 2 * 3  # curves, sizes and one run's affinities, on light and dark
    assert all((image["src"] or "").startswith("data:image/svg+xml") for image in images)
    assert all(image["alt"] for image in images)
    policy = [attributes for tag, attributes in page.tags if "http-equiv" in attributes]
    assert "default-src 'none'" in (policy[0]["content"] or "")
    for expected in (
        "2 runs compared: clusters of digits",
        "different data",
        "heads.temperature0.50.125",
        "1:23 min",
        "The run left no sample",
    ):
        assert expected in page.text, expected
    assert write_comparison([first, second], path).read_text() == path.read_text()


def test_an_overview_stands_before_the_runs_and_only_what_there_is_is_shown(runs, tmp_path):
    silent = [replace(run, facts=replace(run.facts, history=[])) for run in runs]
    overview = Overview(
        title="Two methods",
        columns=["method", "ACC"],
        rows=[[("one", False), ("0.8", False)], [(EVIL, False), ("0.9", True)]],
        notes=["a note"],
        methods=[MethodScores("one", {"acc": [0.8]}, {"acc": 0.7})],
        runs="One run of each",
    )
    html = write_runs(silent, tmp_path / "page.html", overview).read_text(encoding="utf-8")
    page = Page(html)
    assert page.text.count("Two methods") == 2
    assert "a note" in page.text
    assert EVIL in page.text
    assert "script" not in {tag for tag, _ in page.tags}  # there are no images to show
    assert "One run of each" in page.text
    assert ("td", {"class": "best"}) in page.tags
    assert not {"Training", "Affinities"} & set(page.text.splitlines())
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    # The methods, where they agree, their confusions and the sizes, on light and dark.
    assert len(images) == 2 * 4
    of_one_seed = replace(overview, has_their_scores=True)
    once = write_runs(silent, tmp_path / "once.html", of_one_seed).read_text(encoding="utf-8")
    assert [text.count('<th scope="col">ACC</th>') for text in (html, once)] == [2, 1]
    assert '<th scope="col">device</th>' in once


def test_nothing_of_a_run_becomes_markup(facts, write_run, tmp_path):
    config = facts.config | {"data.source": EVIL, "network.backbone": EVIL}
    evil = replace(facts, config=config, metrics=facts.metrics | {"device": EVIL})
    folders = [write_run(tmp_path / "a<b>", evil), write_run(tmp_path / "b", facts)]
    html = write_comparison(folders, tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(html)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert EVIL in page.text
    assert "a<b>" in page.text


def test_runs_are_named_by_their_folders_or_by_their_paths(facts, write_run, tmp_path):
    one, two = write_run(tmp_path / "x" / "run", facts), write_run(tmp_path / "y" / "other", facts)
    assert [run.name for run in read_runs([one, two])] == ["run", "other"]
    three = write_run(tmp_path / "z" / "run", facts)
    assert [run.name for run in read_runs([one, three])] == [str(one.path), str(three.path)]


def test_a_run_given_twice_or_with_torn_metrics_is_refused(facts, write_run, tmp_path):
    one, two = write_run(tmp_path / "one", facts), write_run(tmp_path / "two", facts)
    with pytest.raises(InputError, match="given twice"):
        read_runs([one, two, one])
    two.write_metrics({"n_images": 5})
    with pytest.raises(InputError, match=r"metrics.json: n_clusters is missing"):
        read_runs([one, two])


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


def test_every_dot_of_time_and_quality_has_its_name_and_none_covers_another():
    methods = [
        MethodScores(f"Method {n}", {"acc": [0.5 + 0.001 * n], "nmi": [0.4]}, {}, seconds=10.0 + n)
        for n in range(6)
    ]
    unscored = MethodScores("Unscored", {}, {}, seconds=5.0)
    without_time = MethodScores("Failed", {"acc": [0.9], "nmi": [0.9]}, {})
    figure = drawn(draw_time_and_quality, [*methods, unscored, without_time])
    acc, nmi = figure.axes
    assert list(acc.lines[0].get_xdata()) == [10, 11, 12, 13, 14, 15]
    assert list(nmi.lines[0].get_ydata()) == [0.4] * 6
    names = [text for text in acc.texts if text.get_text()]
    assert [name.get_text() for name in names] == [f"Method {n}" for n in reversed(range(6))]
    boxes = [name.get_window_extent() for name in names]
    assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[at + 1 :])
    # Nothing of an axis is written as a formula.
    assert all("$" not in tick.get_text() for tick in nmi.get_xticklabels())


def test_the_loss_of_each_method_has_a_panel_of_its_own(runs):
    silent = replace(runs[0], name="three", facts=replace(runs[0].facts, history=[]))
    figure = drawn(draw_losses, [*runs, silent])
    shown = [axes for axes in figure.axes if axes.lines]
    assert [axes.get_title() for axes in shown] == ["one", "two"]
    assert list(shown[0].lines[0].get_ydata()) == pytest.approx([4.9, 4.8, 4.7, 4.6])


def test_confusions_stand_beside_each_other(runs):
    confusions = [(run.name, match(run.facts)) for run in runs] * 3
    with drawing_with(LIGHT):
        figure = draw_confusions(confusions, LIGHT)
        figure.draw_without_rendering()
    assert [axes.get_title() for axes in figure.axes if axes.axison] == ["one", "two"] * 3
    shares = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_agreement_is_told_in_percent():
    with drawing_with(LIGHT):
        figure = draw_agreement(["one", "two"], np.array([[1.0, 0.25], [0.25, 1.0]]), LIGHT)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["25", "25"]


def test_settings_of_a_method_are_those_that_it_was_given(runs):
    config = {"method": "ae", "settings.n_code": 8, "settings.width": None, "settings.changes": []}
    run = replace(runs[0], facts=replace(runs[0].facts, config=config))
    assert method_settings(run) == [("n_code", "8")]


def test_the_page_of_methods_has_one_script_that_its_policy_knows(runs, flat_images, tmp_path):
    overview = Overview(
        *(
            "Two",
            ["method"],
            [[("one", False)]],
            [],
            [MethodScores("one", {"acc": [1.0]}, {}, 2.0)],
        ),
        runs="One run of each",
        faults=[EVIL],
        images=shown_images(flat_images(runs[0].facts)),
    )
    evil = [replace(run, name=f"{EVIL}{at}") for at, run in enumerate(runs)]
    html = write_runs(evil, tmp_path / "page.html", overview).read_text(encoding="utf-8")
    page = Page(html)
    kinds = [attributes.get("type") for tag, attributes in page.tags if tag == "script"]
    assert kinds == ["application/json", "module"]
    (policy,) = [attributes for tag, attributes in page.tags if "http-equiv" in attributes]
    assert "default-src 'none'; script-src 'sha256-" in policy["content"]
    assert "unsafe-inline'; base" in policy["content"]
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert page.text.count("Time against quality") == 1
