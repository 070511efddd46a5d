import re
import time
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
import torch

from dcdc.losses.heads import class_affinity, sample_affinity
from dcdc.report import map_layout
from dcdc.report.affinity_figure import (
    draw_affinities,
    draw_affinities_side_by_side,
    sorted_affinities,
)
from dcdc.report.figures import drawing_with, write_figure
from dcdc.report.map_figure import MOST_NAMED, draw_map
from dcdc.report.map_layout import lay_out, layout_of
from dcdc.report.page import write_figures_and_page
from dcdc.report.themes import DARK, LIGHT


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(map_layout, "_STEPS", 250)


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
    make_facts, write_run, make_sample, tmp_path, targets
):
    assignments = [0, 2, 0, 2, 0, 2]  # cluster 1 is empty
    folder = write_run(tmp_path / "run", make_facts(assignments, n_clusters=3, targets=targets))
    folder.write_sample(vars(make_sample(assignments, n_clusters=3)))
    write_figures_and_page(folder, None)
    drawn_files = {file.name for file in folder.figures.iterdir()}
    assert {"map.png", "map.svg", "affinity.png", "affinity.svg"} <= drawn_files
    assert folder.map_file.is_file()


def blobs(n_images=40, n_features=6, n_blobs=2, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_blobs, n_features))
    labels = np.arange(n_images) % n_blobs
    noise = 0.05 * random.normal(size=(n_images, n_features))
    return (centres[labels] + noise).astype(np.float32), labels


def test_what_is_alike_lies_together_the_same_every_time():
    features, labels = blobs()
    layouts = lay_out(features, seed=2**62 + 1)  # as large as a run's seed may be
    assert list(layouts) == ["t-SNE", "PCA"]
    for plane in layouts.values():
        assert plane.shape == (40, 2)
        assert plane.dtype == np.float32
        centres = np.array([plane[labels == label].mean(axis=0) for label in (0, 1)])
        nearest = np.linalg.norm(plane[:, None] - centres, axis=2).argmin(axis=1)
        assert np.array_equal(nearest, labels)
    again = lay_out(features, seed=2**62 + 1)
    assert all(np.array_equal(plane, again[name]) for name, plane in layouts.items())


def test_pca_is_that_of_scikit_learn_on_rows_of_unit_length():
    from sklearn.decomposition import PCA

    features, _ = blobs(n_blobs=5)
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    theirs = PCA(2).fit_transform(units)
    ours = lay_out(features, 0)["PCA"]
    for column in range(2):
        sign = np.sign(ours[:, column] @ theirs[:, column])
        assert np.allclose(ours[:, column], sign * theirs[:, column], atol=1e-5)


def test_length_does_not_matter():
    features, _ = blobs()
    longer = features * np.linspace(1, 9, len(features), dtype=np.float32)[:, None]
    assert np.allclose(lay_out(longer, 0)["PCA"], lay_out(features, 0)["PCA"], atol=1e-5)


@pytest.mark.parametrize(
    "features",
    [np.ones((1, 4)), np.eye(4), np.ones((30, 4)), np.zeros((30, 4)), np.arange(1, 9)[:, None]],
    ids=["one image", "four images", "all equal", "all zero", "one positive feature"],
)
def test_t_sne_is_left_out_where_it_has_nothing_to_say(features):
    layouts = lay_out(features.astype(np.float32), 0)
    assert list(layouts) == ["PCA"]
    assert layouts["PCA"].shape == (len(features), 2)
    assert np.isfinite(layouts["PCA"]).all()


def test_images_that_differ_by_what_float16_rounds_are_alike():
    """As a sample keeps features: what is left of a network that answers all images the same."""
    random = np.random.default_rng(0)
    row = np.maximum(random.normal(size=64), 0)
    noisy = row * (1 + 1e-4 * random.normal(size=(40, 64)))
    kept = noisy.astype(np.float16)
    assert len(np.unique(kept, axis=0)) == 40
    layouts = lay_out(kept.astype(np.float32), 0)
    assert list(layouts) == ["PCA"]
    assert not layouts["PCA"].any()


def test_images_that_differ_a_little_more_are_laid_out():
    random = np.random.default_rng(0)
    row = np.maximum(random.normal(size=64), 0)
    kept = (row * (1 + 5e-3 * random.normal(size=(40, 64)))).astype(np.float16)
    layouts = lay_out(kept.astype(np.float32), 0)
    assert list(layouts) == ["t-SNE", "PCA"]
    assert len(np.unique(layouts["PCA"], axis=0)) == 40


@pytest.mark.parametrize("shape", [(5, 3), (20, 2), (8, 90)])
def test_few_images_and_few_or_many_features(shape):
    layouts = lay_out(np.random.default_rng(0).normal(size=shape).astype(np.float32), 0)
    assert all(np.isfinite(plane).all() for plane in layouts.values())
    assert "t-SNE" in layouts


def test_many_copies_of_few_images():
    features, _ = blobs(n_images=3, n_blobs=3)
    assert np.isfinite(lay_out(np.repeat(features, 10, axis=0), 0)["t-SNE"]).all()


def test_a_layout_is_kept_until_the_sample_changes(
    make_facts, write_run, make_sample, tmp_path, monkeypatch
):
    assignments = [0, 1, 1, 0, 0, 1]
    folder = write_run(tmp_path / "run", make_facts(assignments, n_clusters=2))
    sample = make_sample(assignments, n_clusters=2)
    first = layout_of(folder, sample, 0)()
    with np.load(folder.map_file) as kept:
        assert np.array_equal(kept["rows"], sample.rows)
        assert np.array_equal(kept["PCA"], first["PCA"])
    calls = []
    monkeypatch.setattr(
        map_layout, "lay_out", lambda *given: calls.append(given) or lay_out(given[0], 0)
    )
    again = layout_of(folder, sample, 0)()
    assert list(again) == list(first)
    assert all(np.array_equal(again[name], first[name]) for name in first)
    assert not calls
    layout_of(folder, make_sample(assignments, n_clusters=2, seed=1), 0)()
    assert len(calls) == 1
    layout_of(folder, sample, 1)()
    assert len(calls) == 2
    folder.map_file.write_bytes(b"torn")
    layout_of(folder, sample, 1)()
    assert len(calls) == 3
    layout_of(folder, sample, 1)()
    assert len(calls) == 3


def cosine(left, right) -> float:
    lengths = np.sqrt((left**2).sum()) * np.sqrt((right**2).sum())
    return float((left * right).sum() / lengths)


def test_every_value_against_a_slow_loop(make_sample):
    assignments = [2, 0, 1, 1, 0, 2, 2]
    targets = np.array(list("bacbaca"))
    sample = make_sample(assignments, n_clusters=4)  # the last cluster is empty
    found = sorted_affinities(sample, targets)
    place = {int(row): number for number, row in enumerate(sample.view_rows)}
    assign, perturbed = sample.view_assign, sample.view_assign_perturbed
    for i, row in enumerate(found.rows):
        for j, other in enumerate(found.rows):
            wanted = cosine(assign[place[row]], perturbed[place[other]])
            assert found.sample[i, j] == pytest.approx(wanted, abs=1e-5)
            assert found.ideal_sample[i, j] == (targets[row] == targets[other])
    for i, cluster in enumerate(found.clusters):
        for j, other in enumerate(found.clusters):
            wanted = cosine(assign[:, cluster], perturbed[:, other])
            assert found.classes[i, j] == pytest.approx(wanted, abs=1e-5)
    assert np.array_equal(found.ideal_classes, np.eye(4))
    assert sorted(found.clusters) == [0, 1, 2, 3]


def test_they_are_the_matrices_that_training_contrasts(make_sample):
    sample = make_sample([0, 0, 1, 1, 2], n_clusters=3)
    found = sorted_affinities(sample, np.array([0, 0, 1, 1, 2]))
    assign = torch.from_numpy(sample.view_assign)
    perturbed = torch.from_numpy(sample.view_assign_perturbed)
    assert np.allclose(found.sample, sample_affinity(assign, perturbed), atol=1e-6)
    assert np.allclose(found.classes, class_affinity(assign, perturbed), atol=1e-6)


def test_rows_go_by_class_and_clusters_by_their_matched_class(make_sample):
    targets = np.array(["10", "10", "9", "9", "2", "2"])
    found = sorted_affinities(make_sample([0, 0, 2, 2, 1, 1], n_clusters=4), targets)
    assert found.labels == ["2", "9", "10"]  # by value
    assert found.block_sizes == [2, 2, 2]
    assert found.rows.tolist() == [4, 5, 2, 3, 0, 1]
    assert found.clusters == [1, 2, 0, 3]  # the empty one last
    blocks = np.kron(np.eye(3), np.ones((2, 2)))
    assert np.array_equal(found.ideal_sample, blocks)


def test_without_targets_rows_go_by_cluster(make_sample):
    assignments = np.array([2, 0, 2, 0])
    found = sorted_affinities(make_sample(assignments, n_clusters=3), assignments)
    assert found.labels == [0, 2]
    assert found.rows.tolist() == [1, 3, 0, 2]
    assert found.clusters == [0, 2, 1]


def test_within_a_class_rows_go_by_cluster(make_sample):
    targets = np.array(["a"] * 5)
    found = sorted_affinities(make_sample([1, 0, 1, 0, 1], n_clusters=2), targets)
    assert found.rows.tolist() == [0, 2, 4, 1, 3]


def test_a_column_that_nobody_uses_stays_finite(make_sample):
    sample = make_sample([0, 0, 0], n_clusters=2)
    sample.view_assign[:] = sample.view_assign_perturbed[:] = [1, 0]
    found = sorted_affinities(sample, np.array([0, 0, 0]))
    assert np.allclose(found.classes, [[1, 0], [0, 0]])
    assert np.allclose(found.sample, 1)


@pytest.mark.parametrize(("n_images", "n_clusters"), [(1, 1), (1, 2), (400, 200)])
def test_one_image_one_cluster_and_two_hundred(make_sample, n_images, n_clusters):
    assignments = np.arange(n_images) % n_clusters
    found = sorted_affinities(make_sample(assignments, n_clusters=n_clusters), assignments)
    assert found.sample.shape == found.ideal_sample.shape == (n_images, n_images)
    assert found.classes.shape == found.ideal_classes.shape == (n_clusters, n_clusters)
    assert sum(found.block_sizes) == n_images
    assert np.isfinite(found.sample).all()


@pytest.fixture
def sampled_run(make_facts, write_run, make_sample, tmp_path):
    assignments = [0, 1, 1, 0, 0, 1]
    folder = write_run(tmp_path / "run", make_facts(assignments, n_clusters=2))
    folder.write_sample(vars(make_sample(assignments, n_clusters=2)))
    return folder


def test_figures_are_drawn_while_the_layout_is_made(sampled_run, monkeypatch):
    folder = sampled_run

    def waiting(*given):
        give_up = time.monotonic() + 30
        while not (folder.figures / "sizes.png").exists():
            assert time.monotonic() < give_up
            time.sleep(0.01)
        return lay_out(*given)

    monkeypatch.setattr(map_layout, "lay_out", waiting)
    write_figures_and_page(folder, None)
    assert (folder.figures / "map.png").exists()


def test_a_layout_that_fails_is_told_by_the_report(sampled_run, monkeypatch):
    def failing(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(map_layout, "lay_out", failing)
    with pytest.raises(MemoryError, match="no room"):
        write_figures_and_page(sampled_run, None)
    assert not sampled_run.report_file.exists()
