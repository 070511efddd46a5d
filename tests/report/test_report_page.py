import ast
import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dcdc.report
from dcdc.data.image_set import ImageSet
from dcdc.report import write_report
from dcdc.report.facts import describe_clusters, with_agreement
from dcdc.report.figures import Picture
from dcdc.report.page import duration, render_page
from dcdc.report.page_data import MapPoints

EVIL = """<script>alert("x")</script>' onerror='alert(1)" & co"""


class Page(HTMLParser):
    """Tags with their attributes, the text that people see, and what scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, _tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def data(self) -> dict[str, Any]:
        """What the script works with."""
        return json.loads(self.scripts[0])

    @property
    def thumbnails(self) -> list[dict[str, str | None]]:
        return [image for image in self.all("img") if "title" in image]

    @property
    def only_own_scripts(self) -> bool:
        return [script.get("id") for script in self.all("script")] == ["data", None]


def rendered(facts, images=None, no_gallery=None, points=None) -> Page:
    """The page without its figures, which take their time."""
    if images is None and no_gallery is None:
        no_gallery = "No images."
    html = render_page(
        facts, describe_clusters(facts), {}, images=images, no_gallery=no_gallery, points=points
    )
    return Page(html)


def spread(rows) -> MapPoints:
    """These rows on a diagonal."""
    line = np.linspace(-3, 5, len(rows), dtype=np.float32)
    return MapPoints(
        np.array(rows), {"t-SNE": np.stack([line, line], 1), "PCA": line[:, None] * [1, 0]}
    )


@pytest.fixture(scope="module")
def whole(make_facts, write_run, flat_images, tmp_path_factory):
    """A run with everything: its folder, and its page."""
    facts = make_facts(
        [0, 0, 1, 1, 1], n_clusters=3, targets=["a", "b", "b", "b", "a"], skipped=[("bad", "torn")]
    )
    facts.metrics["baselines"] = {
        "K-Means on pixels": {"acc": 0.5, "nmi": 0.123, "ari": 0.1, "purity": 0.9},
        "as good": {"acc": float(np.nextafter(0.6, 0))},
    }
    facts.history[-1]["warnings"] = ["1 of 3 clusters is empty: train longer"]
    folder = write_run(tmp_path_factory.mktemp("whole") / "run", facts)
    assert write_report(folder, flat_images(facts)) == folder.report_file
    return folder, Page(folder.report_file.read_text(encoding="utf-8"))


def test_every_figure_is_a_file_twice(whole):
    folder, _ = whole
    assert sorted(file.name for file in folder.figures.iterdir()) == [
        f"{stem}.{suffix}"
        for stem in ("clusters", "confusion", "sizes", "training")
        for suffix in ("png", "svg")
    ]
    assert not list(folder.path.rglob("*.partial*"))


def test_the_page_is_self_contained(whole):
    folder, page = whole
    assert {tag for tag, _ in page.tags}.isdisjoint({"link", "iframe", "object", "base", "form"})
    sources = [image["src"] or "" for image in page.all("img")]
    # Two figures on light and dark; five images by chance, the same as the surest, and as the most
    # uncertain.
    assert len(sources) == 4 + 5 + 5 + 5
    assert all(source.startswith("data:image/") for source in sources)
    assert not any("srcset" in attributes for _, attributes in page.tags)
    policy = [meta for meta in page.all("meta") if "http-equiv" in meta]
    assert "default-src 'none'" in (policy[0]["content"] or "")
    html = folder.report_file.read_text(encoding="utf-8")
    assert "@import" not in html
    assert "url(" not in html
    for link in page.all("a"):
        target = link["href"] or ""
        assert target.startswith(("#", "figures/")), target
        if target.startswith("#"):
            assert any(attributes.get("id") == target[1:] for _, attributes in page.tags), target
        else:
            assert (folder.path / target).is_file()


def test_the_policy_knows_the_one_script_by_its_hash(whole):
    _, page = whole
    assert page.only_own_scripts
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    policy = next(meta["content"] or "" for meta in page.all("meta") if "http-equiv" in meta)
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe-eval" not in policy
    assert policy.count("unsafe-inline") == 1  # styles alone
    assert len(page.scripts[1]) < 24_000
    assert "innerHTML" not in page.scripts[1]


def test_the_page_says_what_was_run_and_what_came_out(whole):
    _, page = whole
    for expected in (
        "Clusters of digits",
        "5 of 8 \N{MULTIPLICATION SIGN} 8, grey",
        "3 (2 in use)",
        "1:23 min",
        "cpu (x86_64, 2 threads)",
        "DCDC0.600",  # ACC: three of five images
        "K-Means on pixels0.5000.1230.1000.900",
        "1 of 3 clusters is empty: train longer",
        "badtorn",
        "train.seed = 7",
        "dcdc fit digits --run",
        "mean share 0.60 · purity 0.67, mostly b",
    ):
        assert expected in page.text, expected
    assert "without images" not in page.text


def test_the_better_score_stands_out(whole):
    folder, _ = whole
    html = folder.report_file.read_text(encoding="utf-8")
    assert html.count('<td class="best">0.600</td>') == 2  # one of them less by rounding
    assert "<td>0.500</td>" in html
    assert '<td class="best">0.900</td>' in html


def test_thumbnails_are_the_images_surest_first(whole):
    _, page = whole
    shades = []
    for image in [*page.thumbnails[3:6], *page.thumbnails[8:10]]:  # after those by chance
        content = base64.b64decode((image["src"] or "").partition(",")[2])
        with Image.open(io.BytesIO(content)) as picture:
            assert picture.size == (8, 8)
            shades.append(picture.getpixel((4, 4)))
    assert shades == [6, 9, 12, 0, 3]  # cluster 1, then cluster 0
    assert page.thumbnails[3]["title"] == "image-2, share 0.70, class b"
    assert {image["title"] for image in page.thumbnails[:3]} == {
        image["title"] for image in page.thumbnails[3:6]
    }


def test_no_targets_no_images_no_history(make_facts, write_run, tmp_path):
    facts = make_facts([0, 1, 1], n_clusters=2, epochs=0)
    folder = write_run(tmp_path / "run", facts)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert sorted(file.name for file in folder.figures.iterdir()) == ["sizes.png", "sizes.svg"]
    assert "came without targets" in page.text
    assert "not at hand" in page.text
    assert "no history" in page.text
    assert "Skipped images" not in page.text
    assert "Warnings" not in page.text
    assert "purity" not in page.text
    assert page.thumbnails == []


def test_images_of_another_set_are_not_shown(make_facts, write_run, flat_images, tmp_path):
    facts = make_facts([0, 1, 1], n_clusters=2, epochs=0)
    images = flat_images(facts)
    others = replace(images, names=["image-0", EVIL, "image-2"])
    folder = write_run(tmp_path / "run", facts)
    page = Page(write_report(folder, others).read_text(encoding="utf-8"))
    assert "not those of this run: image 1 is 'image-1'" in page.text
    assert "The clusters are listed without images" in page.text
    assert page.thumbnails == []
    assert page.only_own_scripts
    assert not (folder.figures / "clusters.png").exists()


def test_more_than_50_classes_have_no_confusion(make_facts, write_run, tmp_path):
    many = [str(number) for number in range(51)]
    facts = make_facts([0] * 26 + [1] * 25, n_clusters=2, targets=many, epochs=0)
    folder = write_run(tmp_path / "run", facts)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert not (folder.figures / "confusion.png").exists()
    assert "too many classes" in page.text
    assert page.data["confusion"] is None


def test_markup_in_names_labels_and_paths_does_no_harm(make_facts, flat_images):
    facts = make_facts([0, 1], n_clusters=2, targets=[EVIL, "plain"])
    facts = replace(
        facts,
        names=[EVIL, "plain"],
        path=Path(f"runs/{EVIL.replace('/', '')}"),
        config=facts.config | {"data.source": EVIL},
        skipped=[(EVIL, EVIL)],
    )
    facts.metrics["device"] = EVIL
    facts.metrics["baselines"] = {EVIL: facts.metrics["scores"]}
    facts.history[-1]["warnings"] = [EVIL]
    facts = replace(facts, cluster_names={0: EVIL})
    page = rendered(facts, flat_images(facts).images, points=spread([0, 1]))
    assert page.only_own_scripts
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert page.thumbnails[0]["title"] == f"{EVIL}, share 0.90, class {EVIL}"
    assert page.text.count(EVIL) >= 8
    assert page.data["names"] == {"0": EVIL}
    assert page.data["map"]["name"] == [EVIL, "plain"]
    assert page.scripts[0].isascii()
    assert not set("<>&") & set(page.scripts[0])


def test_control_characters_are_written_out(make_facts):
    name = "a\x1b\x07\u202eb"
    facts = make_facts([0, 1], n_clusters=2, targets=[name, "c"], skipped=[(name, "torn")])
    page = rendered(facts)
    assert r"a\x1b\x07\u202eb" in page.text
    assert not set(name[1:-1]) & set(page.text)


def test_a_name_that_is_no_text_is_written_all_the_same(make_facts):
    page = rendered(make_facts([0, 1], n_clusters=2, skipped=[("caf\udce9.png", "torn")]))
    assert "caf\\udce9.png" in page.text
    facts = make_facts([0, 1], n_clusters=2, names=["caf\udce9.png", "line\u2028end"])
    assert rendered(facts, points=spread([0, 1])).data["map"]["name"] == facts.names


def test_colour_images_and_a_set_larger_than_the_screen(make_facts, flat_images):
    facts = make_facts([0, 1], n_clusters=2)
    page = rendered(facts, flat_images(facts, channels=3, side=224).images)
    content = base64.b64decode((page.thumbnails[1]["src"] or "").partition(",")[2])
    with Image.open(io.BytesIO(content)) as picture:
        assert (picture.mode, picture.size) == ("RGB", (96, 96))
        assert np.abs(np.array(picture.getpixel((50, 50))) - (3, 0, 0)).max() <= 3
    assert not any(box.get("class") == "thumbnails coarse" for box in page.all("div"))


def test_of_200_clusters_30_are_html_and_the_script_adds_the_others(make_facts, flat_images):
    facts = make_facts([*range(199), 0], n_clusters=200)
    page = rendered(facts, flat_images(facts).images)
    assert len(page.all("article")) == 199
    assert len(page.thumbnails) == 2 * 31 + 24  # by chance, and the surest
    assert "Images of the 30 largest of 199 clusters are shown." in page.text
    assert "1 of 200 clusters is empty." in page.text
    assert "200 (199 in use)" in page.text
    later = page.data["later"]
    assert sorted(map(int, later["cards"])) == list(range(30, 199))
    assert later["cards"]["31"] == [[2], [3], []]
    assert later["cluster"][2] == later["cluster"][3] == 31


def test_the_least_certain_are_none_of_the_typical(make_facts, flat_images):
    confidence = np.linspace(0.9, 0.5, 20)
    runner_up = np.where(np.arange(20) == 13, 0.59, 0.05)
    facts = make_facts([0] * 20, n_clusters=2, confidence=confidence.tolist())
    images = flat_images(facts).images
    said = [image["title"] or "" for image in rendered(facts, images).thumbnails]
    numbers = [int(text.split(",")[0].removeprefix("image-")) for text in said]
    assert len(set(numbers[:10])) == 10  # by chance
    assert numbers[10:24] == [*range(8), 19, 18, 17, 16, 15, 14]
    facts = replace(facts, runner_up=np.ones(20, int), runner_up_confidence=runner_up)
    page = rendered(facts, images)
    assert (page.thumbnails[18]["title"] or "").startswith("image-13,")
    assert (page.thumbnails[24]["title"] or "").startswith("image-13,")  # of the whole set
    assert "cluster 0, 0.63next 1, 0.59" in page.text


def test_the_map_holds_what_is_known_of_the_sample(make_facts, flat_images):
    facts = make_facts([0, 0, 1, 1], n_clusters=2, targets=list("xyxy"))
    page = rendered(facts, flat_images(facts).images, points=spread([3, 0, 2]))
    pile = page.data["map"]
    assert pile["name"] == ["image-3", "image-0", "image-2"]
    assert pile["cluster"] == [1, 0, 1]
    assert [page.data["classes"][code] for code in pile["class"]] == ["y", "x", "x"]
    assert pile["confidence"] == [0.5, 0.9, 0.633]
    assert pile["layouts"]["t-SNE"] == [[0, 2048, 4095], [0, 2048, 4095]]
    assert pile["layouts"]["PCA"] == [[0, 2048, 4095], [2048, 2048, 2048]]
    assert "3 of 4 images" in page.text
    content = base64.b64decode(pile["sheet"]["uri"].partition(",")[2])
    with Image.open(io.BytesIO(content)) as sheet:
        shades = [
            sheet.convert("L").getpixel((8 * x + 4, 8 * y + 4)) for x, y in ((0, 0), (1, 0), (0, 1))
        ]
    assert shades == [9, 0, 6]


def test_a_map_without_images_targets_or_spread(make_facts):
    facts = make_facts([0, 0, 1], n_clusters=2)
    nowhere = MapPoints(np.arange(3), {"PCA": np.full((3, 2), np.nan, np.float32)})
    page = rendered(facts, points=nowhere)
    assert page.data["map"]["sheet"] is None
    assert page.data["map"]["class"] is None
    assert page.data["map"]["layouts"]["PCA"] == [[2048] * 3] * 2
    assert not any(box.get("id") == "colour" for box in page.all("select"))


def test_at_most_50_skipped_images_are_listed(make_facts):
    skipped = [(f"bad-{number:02d}.png", "torn") for number in range(53)]
    page = rendered(make_facts([0, 1], n_clusters=2, skipped=skipped))
    assert "bad-49.png" in page.text
    assert "bad-50.png" not in page.text
    assert "And 3 more" in page.text


def test_images_from_python_have_no_command(make_facts):
    facts = make_facts([0, 1], n_clusters=2)
    page = rendered(replace(facts, config=facts.config | {"data.source": ""}))
    assert "dcdc fit" not in page.text
    assert "handed over in Python" in page.text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.94, "0.9 s"), (41.6, "42 s"), (59.9, "1:00 min"), (7384, "2:03 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_failing_writer_leaves_the_old_page(whole, monkeypatch):
    folder, _ = whole
    before = folder.report_file.read_bytes()

    def fail(*_args: object) -> None:
        raise OSError("disk full")

    # The figures are spared, so that it is the page that fails.
    monkeypatch.setattr("dcdc.report.page.write_picture", lambda *_: Picture("", "", False))
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(folder)
    assert folder.report_file.read_bytes() == before
    assert not list(folder.path.rglob("*.partial*"))


def test_importing_the_report_waits_with_matplotlib_and_torch():
    late = {"matplotlib", "torch", "jinja2"}
    code = f"import sys, dcdc.report; sys.exit(not {late}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_report_knows_neither_torch_nor_config_nor_pyplot():
    room = Path(dcdc.report.__file__).parent
    imported = set()
    for file in room.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    assert "dcdc.report.facts" in imported
    for name in imported:
        assert not name.startswith(("torch", "dcdc.config", "dcdc.engine", "matplotlib.pyplot"))


def test_the_share_is_called_what_it_is_and_neighbours_stand_beside_it(
    make_facts, make_sample, flat_images
):
    facts = make_facts([0, 0, 1, 1], n_clusters=2, confidence=[0.9, 0.9, 0.8, 0.8])
    assert "confidence" not in rendered(facts, flat_images(facts).images).text
    sample = make_sample([0, 0, 1, 1], n_clusters=2)
    agreement, clusters = with_agreement(facts, describe_clusters(facts), sample)
    html = render_page(
        facts, clusters, {}, images=None, no_gallery="No images.", agreement=agreement
    )
    page = Page(html)
    assert f"neighbours agree{agreement:.3f}" in page.text
    assert "not the chance that the cluster is right" in page.text
    assert ("The share overstates." in page.text) == (0.85 - agreement > 0.1)
    for told, overstates in ((0.8, False), (0.7, True)):
        html = render_page(
            facts, clusters, {}, images=None, no_gallery="No images.", agreement=told
        )
        assert ("The share overstates." in Page(html).text) == overstates


def test_what_few_ask_for_is_folded_away(whole):
    _, page = whole
    folded = page.all("details")
    assert len(folded) == 2  # settings and command; this run has no affinities
    assert all("open" not in attributes for attributes in folded)
    assert "settings" in page.text
    assert "The command, with every setting" in page.text


def test_classes_that_are_sub_folders_are_called_so(make_facts):
    facts = make_facts([0, 1, 1], n_clusters=2, targets=["a", "b", "b"])
    assert "Clusters against classes" in rendered(facts).text
    facts = replace(facts, names=["a/1.jpg", "b/1.jpg", "b/2.jpg"])
    page = rendered(facts)
    assert "Clusters against sub-folders" in page.text
    assert "years, or phones" in page.text
    assert page.data["class_word"] == "sub-folder"


def test_galleries_show_photos_as_they_are_not_as_training_saw_them(
    make_facts, write_run, tmp_path
):
    photos = tmp_path / "photos"
    photos.mkdir()
    facts = make_facts([0, 0, 1], n_clusters=2)
    facts = replace(facts, config=facts.config | {"data.source": str(photos)})
    facts = replace(facts, names=["0.png", "1.png", "2.png"])
    for number in range(3):
        Image.new("RGB", (300, 200), (40 * number, 0, 0)).save(photos / f"{number}.png")
    small = ImageSet(np.zeros((3, 16, 16, 3), np.uint8), facts.names)
    small.images[:, 0, 0, 0] = range(3)  # no two alike
    folder = write_run(tmp_path / "run", facts)
    page = Page(write_report(folder, small).read_text(encoding="utf-8"))
    content = base64.b64decode((page.thumbnails[0]["src"] or "").partition(",")[2])
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.size == (96, 96)
    with Image.open(folder.figures / "clusters.png") as picture:
        assert round(picture.info["dpi"][0]) == 300
    shutil.rmtree(photos)
    page = Page(write_report(folder, small).read_text(encoding="utf-8"))
    content = base64.b64decode((page.thumbnails[0]["src"] or "").partition(",")[2])
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.size == (16, 16)
