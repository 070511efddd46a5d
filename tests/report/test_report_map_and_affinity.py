import re
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

from dcdc.report import layout
from dcdc.report.affinity_figure import draw_affinities, draw_affinities_side_by_side
from dcdc.report.figure_files import write_figure
from dcdc.report.map_figure import MOST_NAMED, draw_map
from dcdc.report.theme import DARK, LIGHT, drawing_with
from dcdc.report.views import sorted_affinities
from dcdc.report.write import write_figures_and_page


def drawn(draw, *given, theme=LIGHT):
    with drawing_with(theme):
        figure = draw(*given, theme)
        figure.draw_without_rendering()
    return figure


def overlapping(texts) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(a, b) for (a, box), (b, other) in combinations(boxes, 2) if box.overlaps(other)]


def planes(n_images, seed=0):
    random = np.random.default_rng(seed)
    return {name: random.normal(size=(n_images, 2)).astype("f4") for name in ("t-SNE", "PCA")}


def colours_at(axes) -> dict[tuple[float, float], str]:
    found = {}
    for points in axes.collections:
        colours = points.get_facecolors()
        for place, colour in zip(points.get_offsets(), colours, strict=True):
            found[float(place[0]), float(place[1])] = mpl.colors.to_hex(colour)
    return found


def test_the_map_shows_every_image_by_cluster_and_by_class():
    clusters = np.array([0, 0, 2, 2, 2])
    targets = np.array(["cat", "cat", "dog", "dog", "cat"])
    layouts = planes(5)
    figure = drawn(draw_map, layouts, clusters, targets)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["t-SNE, by cluster", "PCA, by cluster", "t-SNE, by class", "PCA, by class"]
    assert [axes.get_xlabel() for axes in figure.axes[:2]] == ["t-SNE 1", "PCA 1"]
    for axes, name in zip(figure.axes, ("t-SNE", "PCA") * 2, strict=True):
        assert set(colours_at(axes)) == {(float(x), float(y)) for x, y in layouts[name]}
    by_cluster, by_class = colours_at(figure.axes[0]), colours_at(figure.axes[2])
    at = [(float(x), float(y)) for x, y in layouts["t-SNE"]]
    assert by_cluster[at[0]] == by_cluster[at[1]] != by_cluster[at[2]]
    # A class looks as its cluster does: the last image is a cat among dogs.
    assert by_class[at[0]] == by_cluster[at[0]] == by_class[at[4]]
    assert by_class[at[2]] == by_cluster[at[2]]
    legends = [axes.get_legend() for axes in figure.axes]
    assert [legend is None for legend in legends] == [True, False, True, False]
    assert [text.get_text() for text in legends[1].texts] == ["0", "2"]
    assert [text.get_text() for text in legends[3].texts] == ["cat", "dog"]


def test_the_map_without_targets_or_t_sne():
    figure = drawn(draw_map, {"PCA": np.zeros((1, 2), "f4")}, np.array([0]), None)
    assert [axes.get_title() for axes in figure.axes] == ["PCA, by cluster"]


@pytest.mark.parametrize("n_clusters", [7, 10, MOST_NAMED])
def test_no_two_clusters_of_a_legend_look_alike(n_clusters):
    clusters = np.arange(200) % n_clusters
    legend = drawn(draw_map, planes(200), clusters, None).axes[1].get_legend()
    looks = {(line.get_color(), line.get_marker()) for line in legend.legend_handles}
    assert len(looks) == n_clusters
    assert overlapping(legend.texts) == []
    figure = legend.get_figure()
    assert legend.get_window_extent().x1 <= figure.bbox.width


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_two_hundred_clusters_have_no_legend(theme):
    clusters = np.arange(600) % 200
    targets = np.array([f"class {cluster}" for cluster in clusters])
    figure = drawn(draw_map, planes(600), clusters, targets, theme=theme)
    assert all(axes.get_legend() is None for axes in figure.axes)
    assert len(set(colours_at(figure.axes[0]).values())) == 10


def test_more_classes_than_clusters_are_all_named():
    targets = np.array(list("abcdef") * 5)
    figure = drawn(draw_map, planes(30), np.arange(30) % 2, targets)
    legend = figure.axes[3].get_legend()
    assert [text.get_text() for text in legend.texts] == list("abcdef")
    assert len({(line.get_color(), line.get_marker()) for line in legend.legend_handles}) == 6


def test_points_of_the_map_are_pixels_in_the_svg_and_the_same_every_time(tmp_path):
    layouts, clusters = planes(300), np.arange(300) % 4
    svg = write_figure(lambda theme: draw_map(layouts, clusters, None, theme), tmp_path, "map")
    assert svg.count(b"<image") == 2
    assert len(re.findall(rb"<use", svg)) < 100
    again = write_figure(lambda theme: draw_map(layouts, clusters, None, theme), tmp_path, "map2")
    assert again == svg


def test_affinities_stand_beside_their_ideals(make_sample):
    targets = np.repeat(["cat", "dog", "eel"], 4)
    sample = make_sample(np.repeat([2, 0, 1], 4), n_clusters=3)
    affinities = sorted_affinities(sample, targets)
    figure = drawn(draw_affinities, affinities, True)
    shown = [axes.images[0].get_array() for axes in figure.axes[:4]]
    wanted = (
        affinities.sample,
        affinities.ideal_sample,
        affinities.classes,
        affinities.ideal_classes,
    )
    for ours, theirs in zip(shown, wanted, strict=True):
        assert np.array_equal(ours, theirs)
    sample_axes, _, class_axes, _, bar = figure.axes
    assert sample_axes.get_xlabel() == "perturbed images, sorted by class"
    assert [text.get_text() for text in sample_axes.get_yticklabels()] == ["cat", "dog", "eel"]
    assert [text.get_text() for text in class_axes.get_yticklabels()] == ["2", "0", "1"]
    assert bar.get_ylabel() == "affinity (cosine of assignments)"
    assert all(axes.images[0].get_clim() == (0, 1) for axes in figure.axes[:4])


@pytest.mark.parametrize("draw", [draw_affinities, draw_affinities_side_by_side])
@pytest.mark.parametrize(
    ("n_images", "n_clusters", "name"),
    [(1, 1, "{}"), (300, 10, "{}"), (300, 20, "a class with a long name {}"), (300, 200, "{}")],
)
def test_no_text_of_the_affinities_overlaps_or_leaves_the_figure(
    make_sample, draw, n_images, n_clusters, name
):
    assignments = np.arange(n_images) % n_clusters
    targets = np.array([name.format(cluster) for cluster in assignments])
    affinities = sorted_affinities(make_sample(assignments, n_clusters=n_clusters), targets)
    figure = drawn(draw, affinities, True)
    texts = [text for axes in figure.axes for text in axes.get_xticklabels()]
    texts += [text for axes in figure.axes for text in axes.get_yticklabels()]
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    texts = [text for text in texts if text.get_text()]
    assert overlapping(texts) == []
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.width + 1, text
        assert box.y0 >= -1, text
    if n_clusters == 200:
        assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == []


def test_without_targets_the_axes_speak_of_clusters(make_sample):
    sample = make_sample([0, 1, 1], n_clusters=2)
    figure = drawn(draw_affinities_side_by_side, sorted_affinities(sample, [0, 1, 1]), False)
    assert figure.axes[0].get_ylabel() == "images, sorted by cluster"
    assert figure.axes[1].get_title() == "clusters (N)"


@pytest.mark.parametrize("targets", [None, list("ababaa")])
def test_a_run_with_a_sample_gets_both_figures(
    make_facts, write_run, make_sample, tmp_path, monkeypatch, targets
):
    monkeypatch.setattr(layout, "_STEPS", 250)
    assignments = [0, 2, 0, 2, 0, 2]  # cluster 1 is empty
    folder = write_run(tmp_path / "run", make_facts(assignments, n_clusters=3, targets=targets))
    folder.write_sample(vars(make_sample(assignments, n_clusters=3)))
    write_figures_and_page(folder, None)
    drawn_files = {file.name for file in folder.figures.iterdir()}
    assert {"map.png", "map.svg", "affinity.png", "affinity.svg"} <= drawn_files
    assert folder.map_file.is_file()
