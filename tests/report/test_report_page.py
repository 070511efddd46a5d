import ast
import base64
import io
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

import dcdc.report
from dcdc.report import write_report
from dcdc.report.clusters import describe_clusters
from dcdc.report.figure_files import Picture
from dcdc.report.page import duration, render_page

EVIL = """<script>alert("x")</script>' onerror='alert(1)" & co"""


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

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

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def thumbnails(self) -> list[dict[str, str | None]]:
        return [image for image in self.all("img") if "title" in image]


def rendered(facts, images=None, no_gallery=None) -> Page:
    """The page without its figures, which take their time."""
    if images is None and no_gallery is None:
        no_gallery = "No images."
    html = render_page(facts, describe_clusters(facts), {}, images=images, no_gallery=no_gallery)
    return Page(html)


@pytest.fixture(scope="module")
def whole(make_facts, write_run, flat_images, tmp_path_factory):
    """A run with everything: its folder, and its page."""
    facts = make_facts(
        [0, 0, 1, 1, 1], n_clusters=3, targets=["a", "b", "b", "b", "a"], skipped=[("bad", "torn")]
    )
    facts.metrics["baselines"] = {
        "K-Means on pixels": {"acc": 0.5, "nmi": 0.123, "ari": 0.1, "purity": 0.9}
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
    _, page = whole
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "iframe", "object", "a"})
    sources = [image["src"] or "" for image in page.all("img")]
    assert len(sources) == 6 + 5  # three figures on light and dark, five thumbnails
    assert all(source.startswith("data:image/") for source in sources)
    assert not any("srcset" in attributes for _, attributes in page.tags)
    policy = [meta for meta in page.all("meta") if "http-equiv" in meta]
    assert "default-src 'none'" in (policy[0]["content"] or "")
    assert "@import" not in page.text
    assert "url(" not in page.text


def test_the_page_says_what_was_run_and_what_came_out(whole):
    _, page = whole
    for expected in (
        "Clusters of digits",
        "5 of 8 \N{MULTIPLICATION SIGN} 8, grey",
        "3 (2 in use)",
        "1 min 23 s",
        "cpu (x86_64, 2 threads)",
        "DCDC0.600",  # ACC: three of five images
        "K-Means on pixels0.5000.1230.1000.900",
        "1 of 3 clusters is empty: train longer",
        "badtorn",
        "train.seed = 7",
        "dcdc fit digits --run",
        "mean confidence 0.60 · purity 0.67, mostly b",
    ):
        assert expected in page.text, expected
    assert "The gallery is left out" not in page.text


def test_the_better_score_stands_out(whole):
    folder, _ = whole
    html = folder.report_file.read_text(encoding="utf-8")
    assert '<td class="best">0.600</td>' in html
    assert "<td>0.500</td>" in html
    assert '<td class="best">0.900</td>' in html


def test_thumbnails_are_the_images_surest_first(whole):
    _, page = whole
    shades = []
    for image in page.thumbnails:
        content = base64.b64decode((image["src"] or "").partition(",")[2])
        with Image.open(io.BytesIO(content)) as picture:
            assert picture.size == (8, 8)
            shades.append(picture.getpixel((4, 4)))
    assert shades == [6, 9, 12, 0, 3]  # cluster 1, then cluster 0
    assert page.thumbnails[0]["title"] == "image-2, confidence 0.70, class b"


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
    assert "The gallery is left out" in page.text
    assert page.thumbnails == []
    assert page.all("script") == []
    assert not (folder.figures / "clusters.png").exists()


def test_more_than_50_classes_have_no_confusion(make_facts, write_run, tmp_path):
    many = [str(number) for number in range(51)]
    facts = make_facts([0] * 26 + [1] * 25, n_clusters=2, targets=many, epochs=0)
    folder = write_run(tmp_path / "run", facts)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert not (folder.figures / "confusion.png").exists()
    assert "against classes" not in page.text


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
    page = rendered(facts, flat_images(facts).images)
    assert page.all("script") == []
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert page.thumbnails[0]["title"] == f"{EVIL}, confidence 0.90, class {EVIL}"
    assert page.text.count(EVIL) >= 8


def test_a_name_that_is_no_text_is_written_all_the_same(make_facts):
    page = rendered(make_facts([0, 1], n_clusters=2, skipped=[("caf\udce9.png", "torn")]))
    assert "caf\\udce9.png" in page.text


def test_colour_images_and_a_set_larger_than_the_screen(make_facts, flat_images):
    facts = make_facts([0, 1], n_clusters=2)
    page = rendered(facts, flat_images(facts, channels=3, side=224).images)
    content = base64.b64decode((page.thumbnails[1]["src"] or "").partition(",")[2])
    with Image.open(io.BytesIO(content)) as picture:
        assert (picture.mode, picture.size) == ("RGB", (96, 96))
        assert picture.getpixel((50, 50)) == (3, 0, 0)
    assert not any(box.get("class") == "thumbnails coarse" for box in page.all("div"))


def test_200_clusters_show_30(make_facts, flat_images):
    facts = make_facts([*range(199), 0], n_clusters=200)
    page = rendered(facts, flat_images(facts).images)
    assert len([box for box in page.all("div") if box.get("class") == "cluster"]) == 30
    assert "The 30 largest of 199 clusters are shown. 1 of 200 clusters is empty." in page.text
    assert "200 (199 in use)" in page.text


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
    [(0.94, "0.9 s"), (41.6, "42 s"), (59.9, "1 min 00 s"), (7384, "2 h 03 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_failing_writer_leaves_the_old_page(whole, monkeypatch):
    folder, _ = whole
    before = folder.report_file.read_bytes()

    def fail(*_args: object) -> None:
        raise OSError("disk full")

    # The figures are spared, so that it is the page that fails.
    monkeypatch.setattr("dcdc.report.write.write_picture", lambda *_: Picture("", "", False))
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
