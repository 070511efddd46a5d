from dataclasses import replace
from functools import partial
from itertools import combinations
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from dcdc.config import PHASES
from dcdc.report.confusion_figure import draw_confusion, match
from dcdc.report.facts import describe_clusters
from dcdc.report.figures import drawing_with, write_figure
from dcdc.report.gallery import (
    SIDE,
    draw_gallery,
    gallery_heading,
    once,
    printed_images,
    random_images,
    shown_clusters,
    tile,
)
from dcdc.report.panels import draw_sizes
from dcdc.report.themes import DARK, LIGHT
from dcdc.report.training_figure import draw_training


def drawn(draw, *given, theme=LIGHT):
    with drawing_with(theme):
        figure = draw(*given, theme)
        figure.draw_without_rendering()
    return figure


def overlapping(texts) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    return [(a, b) for (a, box), (b, other) in combinations(boxes, 2) if box.overlaps(other)]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_training_has_a_panel_for_what_is_known(make_facts, theme):
    facts = make_facts([0, 1], n_clusters=2, targets=["a", "b"], evaluate_every=2)
    figure = drawn(draw_training, facts, theme=theme)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["loss (mean of the epoch)", "score against the targets", "clusters"]
    assert figure.axes[-1].get_xlabel() == "epoch"
    loss, scores, active = figure.axes
    assert [line.get_label() for line in loss.lines] == [
        "total",
        "sample view, over-clustering head",
        "class view, over-clustering head",
        "sample view, cluster head",
        "class view, cluster head",
    ]
    # The same term has the same colour in both heads; the line tells the heads apart.
    assert loss.lines[1].get_color() == loss.lines[3].get_color() != loss.lines[2].get_color()
    assert loss.lines[1].get_linestyle() != loss.lines[3].get_linestyle()
    assert list(scores.lines[0].get_xdata()) == [2, 4]
    assert list(active.lines[-1].get_ydata()) == [2, 2]


def test_control_characters_in_names_leave_valid_svg(tmp_path, make_facts):
    facts = make_facts([0, 1], n_clusters=2, targets=["a\x01\x1b[2J", "b\ufffe"])
    confusion = match(facts)
    svg = write_figure(lambda theme: draw_confusion(confusion, theme), tmp_path, "confusion")
    ElementTree.fromstring(svg)  # raises where it is no XML
    assert b"\\x01\\x1b[2J" in svg
    assert (tmp_path / "confusion.svg").read_bytes() == svg


def test_training_without_targets_or_evaluation_shows_the_loss_alone(make_facts):
    figure = drawn(draw_training, make_facts([0, 1], n_clusters=2, evaluate_every=9))
    assert len(figure.axes) == 1


def test_one_epoch_is_visible_as_dots(make_facts):
    figure = drawn(draw_training, make_facts([0, 1], n_clusters=2, epochs=1))
    assert all(line.get_marker() == "o" for line in figure.axes[0].lines)
    assert list(figure.axes[-1].get_xticks()) == [1]


def in_phases(facts, *, features="contrast", n_features=3, heads=4, self_label=2):
    """What a run of three phases leaves."""
    kinds = [features] * n_features + ["heads"] * heads + ["self_label"] * self_label
    history = []
    for epoch, kind in enumerate(kinds, start=1):
        line = {"epoch": epoch, "seconds": 0.5, "phase": kind, "loss": 1 / epoch}
        if kind == "heads":
            line |= {"cluster_head/sample_view": 2.0, "cluster_head/class_view": 1.0}
        else:
            line[kind] = line["loss"]
        if kind == "self_label":
            line["sure"] = 0.8
        if kind != features:
            line |= {"active_clusters": 2, "acc": 0.5, "nmi": 0.4, "ari": 0.3}
        history.append(line)
    known = ("contrast", "heads", "self_label")
    kept = {name: PHASES.get(name) for name in known if features == "contrast"}
    phases = [{"name": name, "label": p.label, "color": p.color} for name, p in kept.items()]
    return replace(facts, history=history, metrics=facts.metrics | {"phases": phases})


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_each_phase_has_its_own_loss_and_the_scores_go_on(make_facts, theme):
    facts = in_phases(make_facts([0, 1], n_clusters=2, targets=["a", "b"]))
    figure = drawn(draw_training, facts, theme=theme)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "loss, instance contrast",
        "loss, heads",
        "loss, self-labels",
        "share",
        "score against the targets",
        "clusters",
    ]
    contrast, heads, self_label, sure, scores, clusters = figure.axes
    assert [line.get_label() for line in contrast.lines] == ["loss"]
    assert list(contrast.lines[0].get_xdata()) == [1, 2, 3]
    assert [line.get_label() for line in heads.lines] == [
        "total",
        "sample view, cluster head",
        "class view, cluster head",
    ]
    assert list(heads.lines[0].get_xdata()) == [4, 5, 6, 7]
    assert list(self_label.lines[0].get_xdata()) == [8, 9]
    assert contrast.get_xlabel() == "epochs 1 to 3"
    assert list(sure.lines[0].get_ydata()) == [0.8, 0.8]
    assert list(scores.lines[0].get_xdata()) == [4, 5, 6, 7, 8, 9]
    # One thin line in each of the lower panels, where self-labels begin.
    for axes in (sure, scores, clusters):
        assert [7.5, 7.5] in [list(line.get_xdata()) for line in axes.lines]
        assert axes.get_xlim() == clusters.get_xlim()
    assert [text.get_text() for text in clusters.texts] == ["heads", "self-labels"]
    colors = [text.get_color() for text in clusters.texts]
    assert colors == [PHASES.get("heads").color, PHASES.get("self_label").color]
    texts = [text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label)]
    assert overlapping(texts) == []


def test_a_run_of_0_1_0_has_the_names_of_its_history(make_facts):
    """It did not keep what phases call themselves."""
    facts = in_phases(make_facts([0, 1], n_clusters=2), features="instance")
    figure = drawn(draw_training, facts)
    assert [axes.get_ylabel() for axes in figure.axes][:3] == [
        "loss, instance",
        "loss, heads",
        "loss, self label",
    ]


def test_a_run_that_has_only_begun_its_phases(make_facts):
    """One phase so far, which the history names."""
    facts = in_phases(make_facts([0, 1], n_clusters=2), heads=0, self_label=0)
    figure = drawn(draw_training, facts)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss (mean of the epoch)"]
    assert figure.axes[0].get_xlabel() == "epoch"


def test_a_phase_of_one_epoch_keeps_its_name_inside_the_panel(make_facts):
    facts = in_phases(make_facts([0, 1], n_clusters=2), n_features=1, heads=30, self_label=1)
    figure = drawn(draw_training, facts)
    assert figure.axes[0].get_xlabel() == "epoch 1"
    assert [text.get_text() for text in figure.axes[-1].texts] == ["heads"]


@pytest.mark.parametrize(
    ("n_clusters", "size"), [(2, 5), (10, 180), (20, 12_345), (30, 7), (200, 3)]
)
def test_sizes_say_every_cluster_without_overlap(make_facts, n_clusters, size):
    assignments = np.repeat(np.arange(1, n_clusters), size).tolist()  # cluster 0 is empty
    figure = drawn(draw_sizes, describe_clusters(make_facts(assignments, n_clusters=n_clusters)))
    axes = figure.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [size] * (n_clusters - 1) + [0]
    assert overlapping(axes.texts) == []
    assert overlapping(axes.get_xticklabels()) == []
    if n_clusters <= 30:
        assert axes.get_xticklabels()[-1].get_text() == "0"
    if n_clusters <= 10:
        assert [text.get_text() for text in axes.texts][-2:] == [str(size), "0"]


def test_sizes_split_by_main_class(make_facts):
    facts = make_facts([0, 0, 0, 1], n_clusters=2, targets=list("aaba"))
    axes = drawn(draw_sizes, describe_clusters(facts)).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 1, 1, 0]


def draw(clusters, images):
    chosen = printed_images(clusters, images, seed=7)
    return drawn(draw_gallery, clusters, chosen, images), chosen


@pytest.mark.parametrize("channels", [1, 3])
def test_gallery_shows_images_by_chance_and_the_surest(make_facts, flat_images, channels):
    facts = make_facts(
        [1, 0, 1, 1], n_clusters=3, confidence=[0.6, 0.9, 0.8, 0.7], targets=list("abab")
    )
    images = flat_images(facts, channels=channels).images
    figure, ((_, (by_chance, surest)), _) = draw(describe_clusters(facts), images)
    assert sorted(by_chance) == [0, 2, 3]
    assert surest == [2, 3, 0]
    canvas = figure.axes[0].images[0].get_array()
    second = 6 * (SIDE + 6) - 6 + 18
    for start, rows in ((0, by_chance), (second, surest)):
        middles = canvas[SIDE // 2, start + SIDE // 2 :: SIDE + 6]
        assert middles[:3, 0].tolist() == [3 * row for row in rows]
        assert middles[:3, 1].tolist() == ([3 * row for row in rows] if channels == 1 else [0] * 3)
        assert (middles[3:5] == 255).all()  # paper where there is no fourth image
    said = [text.get_text() for text in figure.axes[0].texts]
    assert said[:4] == ["cluster 1", "3 images", "share 0.70", "purity 0.67"]
    assert overlapping([*figure.axes[0].texts, *figure.texts]) == []


def test_large_images_have_more_dots_on_paper_of_the_same_size(make_facts, flat_images, tmp_path):
    clusters = describe_clusters(make_facts([0, 1, 1], n_clusters=2))
    sizes = []
    for side in (32, 200):
        images = flat_images(make_facts([0, 1, 1], n_clusters=2), side=side).images
        chosen = printed_images(clusters, images, 0)
        write_figure(partial(draw_gallery, clusters, chosen, images), tmp_path, f"of-{side}")
        with Image.open(tmp_path / f"of-{side}.png") as picture:
            sizes.append((picture.size, round(picture.info["dpi"][0])))
    (small, few), (large, many) = sizes
    assert (few, many) == (150, 300)
    assert large == (2 * small[0], 2 * small[1])


def test_by_chance_is_any_image_as_likely_and_the_same_for_a_seed(make_facts):
    (cluster,) = shown_clusters(describe_clusters(make_facts([0] * 50, n_clusters=2)))
    seen = [row for seed in range(400) for row in random_images(cluster, seed, 5)]
    assert min(np.bincount(seen, minlength=50)) > 20  # 40 expected
    assert random_images(cluster, 3, 5) == random_images(cluster, 3, 5)
    assert sorted(random_images(cluster, 3, 99)) == list(range(50))


def test_copies_of_one_image_are_shown_once(make_facts, flat_images):
    images = flat_images(make_facts([0] * 6, n_clusters=2)).images
    images[4] = images[1]
    assert once([5, 4, 1, 0, 2], images, 3) == [5, 4, 0]
    assert once([5, 4, 1], None, 3) == [5, 4, 1]


def test_gallery_draws_thirty_of_200_clusters_and_says_so(make_facts, flat_images):
    facts = make_facts([*range(199), 0], n_clusters=200)
    clusters = describe_clusters(facts)
    assert [cluster.number for cluster in shown_clusters(clusters)] == list(range(30))
    heading = gallery_heading(clusters)
    assert "The 30 largest of 199 clusters" in heading
    assert "1 of 200 clusters is empty" in heading
    figure, _ = draw(clusters, flat_images(facts).images)
    assert figure.texts[0].get_window_extent().x1 < figure.bbox.width


@pytest.mark.parametrize("side", [8, 28, 64, 224])
def test_tiles_have_one_size(side):
    image = np.full((side, side, 1), 77, np.uint8)
    assert tile(image).shape == (SIDE, SIDE, 3)
    assert (tile(image) == 77).all()


def test_files_are_png_at_150_dpi_and_svg_and_the_same_every_time(make_facts, tmp_path):
    clusters = describe_clusters(make_facts([0, 1, 1], n_clusters=2))

    def write(folder):
        write_figure(lambda theme: draw_sizes(clusters, theme), folder, "sizes")
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    files = write(tmp_path / "one")
    assert sorted(files) == ["sizes.png", "sizes.svg"]
    with Image.open(tmp_path / "one" / "sizes.png") as picture:
        assert picture.info["dpi"] == pytest.approx((150, 150), abs=0.1)
        assert picture.size == (960, 510)
    assert b"<svg" in files["sizes.svg"]
    assert write(tmp_path / "two") == files


def test_a_persons_own_style_neither_leaks_in_nor_is_touched(make_facts, tmp_path):
    clusters = describe_clusters(make_facts([0, 1, 1], n_clusters=2))

    def write(name):
        return write_figure(lambda theme: draw_sizes(clusters, theme), tmp_path, name)

    plain = write("plain")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        assert write("styled") == plain
        assert mpl.rcParams["font.size"] == 30
