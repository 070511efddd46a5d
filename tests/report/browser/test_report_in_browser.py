"""The page in a real browser, opened from disk as people do."""

import json
import time

import numpy as np
import pytest

from dcdc.engine.edits import OUTSIDE, RunAnswers, corrected, read_edits
from dcdc.report.facts import describe_clusters
from dcdc.report.figures import Picture
from dcdc.report.page import render_page
from dcdc.report.page_data import MapPoints
from devtools import Tab

HOSTILE = (
    "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>\"'`&amp;"
    "<!--\u2028\u202e\u2067\N{CAT FACE}${window.ran=1}"
)
LONG = "a_name_that_does_not_break_" * 12


def of(facts) -> RunAnswers:
    return RunAnswers(facts.names, facts.assignments, facts.n_clusters)


@pytest.fixture(scope="module")
def write_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def write(stem, facts, images, points=None):
        no_gallery = "No images." if images is None else None
        svg = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"
        pictures = dict.fromkeys(("sizes", "affinity", "map"), Picture(svg, svg, False))
        html = render_page(
            facts,
            describe_clusters(facts),
            pictures,
            images=images,
            no_gallery=no_gallery,
            points=points,
            answers=of(facts).digest,
        )
        file = folder / f"{stem}.html"
        file.write_text(html, encoding="utf-8")
        return file

    return write


def circle(rows) -> MapPoints:
    """The first in the middle, the others around it."""
    turn = np.linspace(0, 2 * np.pi, len(rows))[:, None] + [0, np.pi / 2]
    ring = np.cos(turn)
    ring[0] = (ring[1:].min(axis=0) + ring[1:].max(axis=0)) / 2
    return MapPoints(np.array(rows), {"t-SNE": ring.astype(np.float32), "PCA": -ring})


@pytest.fixture(scope="module")
def usual_facts(make_facts):
    """40 images in clusters 0 (20), 2 (15), 3 (5) and an empty one."""
    assignments = [0] * 20 + [2] * 15 + [3] * 5
    return make_facts(
        assignments,
        n_clusters=4,
        targets=["zebra"] * 15 + ["ape"] * 5 + ["ape"] * 15 + ["cow"] * 4 + ["yak"],
        confidence=[*np.linspace(0.6, 0.5, 20), *np.linspace(0.9, 0.8, 15), *[0.99] * 5],
        cluster_names={2: "already named"},
    )


@pytest.fixture(scope="module")
def usual(usual_facts, flat_images, write_page):
    """Image 39 is not on the map."""
    return write_page("usual", usual_facts, flat_images(usual_facts).images, circle(range(39)))


def shown(tab) -> list[int]:
    return tab.run(
        "[...document.querySelectorAll('.cluster:not([hidden])')].map((it) => +it.dataset.cluster)"
    )


def set_to(tab, selector, value) -> None:
    tab.run(
        f"""(() => {{
          const node = document.querySelector({json.dumps(selector)});
          node.value = {json.dumps(value)};
          const tell = (kind) => node.dispatchEvent(new Event(kind, {{ bubbles: true }}));
          ["input", "change"].forEach(tell);
        }})()"""
    )


def in_the_middle(tab) -> tuple[float, float]:
    tab.run("document.getElementById('plane').scrollIntoView({ block: 'center' })")
    return tuple(
        tab.run(
            """(() => {
              const box = document.getElementById("plane").getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            })()"""
        )
    )


def painted(tab) -> int:
    """How many pixels of the map are not empty, and how much."""
    return tab.run(
        """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
          const plane = document.getElementById("plane");
          const all = plane.getContext("2d").getImageData(0, 0, plane.width, plane.height).data;
          let sum = 0;
          for (let i = 3; i < all.length; i += 4) sum += all[i];
          done(sum);
        })))"""
    )


def text(tab, selector) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)}).textContent")


def test_every_image_of_the_page_is_an_image(open_page, usual):
    tab = open_page(usual)
    widths = tab.run("[...document.images].map((image) => image.naturalWidth)")
    assert len(widths) == (10 + 8 + 6) + (10 + 8 + 6) + (5 + 5) + 24 + 3 * 2
    assert min(widths) > 0
    assert tab.requests == [usual.as_uri()]


def test_clusters_are_sorted_and_found(open_page, usual):
    tab = open_page(usual)
    assert shown(tab) == [0, 2, 3]
    for by, order in (
        ("confidence", [3, 2, 0]),
        ("purity", [2, 3, 0]),
        ("number", [0, 2, 3]),
        ("size", [0, 2, 3]),
    ):
        set_to(tab, "#sort", by)
        assert shown(tab) == order, by
    for wanted, found in (
        ("ZEB", [0]),
        ("2", [2]),
        ("cluster 3", [3]),
        ("already", [2]),
        ("none such", []),
        ("", [0, 2, 3]),
    ):
        set_to(tab, "#find", wanted)
        assert shown(tab) == found, wanted
    tab.type("#find", "cow")
    assert shown(tab) == [3]
    assert text(tab, "#said") == "1 of 3 clusters"


def saved_file(browser, folder):
    """What the page hands over, once it is there."""
    file, end = folder / "edits.json", time.monotonic() + 20
    while not file.exists() and time.monotonic() < end:
        browser.call("Browser.getVersion")
        time.sleep(0.05)
    found = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return found


def load(tab, folder, content) -> str:
    file = folder / "given.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    document = tab.call("DOM.getDocument")["root"]["nodeId"]
    field = tab.call("DOM.querySelector", nodeId=document, selector="#load")["nodeId"]
    tab.run("document.getElementById('said').textContent = ''")
    tab.call("DOM.setFileInputFiles", nodeId=field, files=[str(file)])
    tab.wait("document.getElementById('said').textContent")
    return text(tab, "#said")


NAMES = "[...document.querySelectorAll('.cluster')].map((it) => it.querySelector('input').value)"


def test_names_are_given_saved_and_loaded(open_page, browser, usual, tmp_path):
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab = open_page(usual)
    assert tab.run("document.querySelector('[data-cluster=\"2\"] input').value") == "already named"
    tab.type("[data-cluster='0'] input", f"  stripes {HOSTILE} ")
    assert "not saved" in text(tab, "#said")
    assert "stripes" in text(tab, "#legend")
    assert "stripes" in text(tab, "[data-heads='0']")
    set_to(tab, "#find", "stripes")
    assert shown(tab) == [0]
    tab.click_on("#save")
    saved = saved_file(browser, tmp_path)
    name = " ".join(f"stripes {HOSTILE}".split())
    assert len(name) > 100  # the field took no more than a name may hold
    (edit,) = saved["edits"]  # the other name is no correction
    assert (saved["format"], edit["kind"], edit["cluster"]) == (1, "name", 0)
    assert name.startswith(edit["name"])
    set_to(tab, "#find", "")
    for bad in (
        "{",
        "null",
        {"format": 2, "clusters": {}},
        {"format": 1, "clusters": None},
        {"format": 1, "clusters": {"4": "beyond"}},
        {"format": 1, "clusters": {"0": 7}},
        {"format": 1, "clusters": {"0": "a" * 101}},
        {**saved, "answers": "0" * 16},
        {**saved, "edits": None},
    ):
        assert load(tab, tmp_path, bad) == "that is no file of corrections of this run"
        assert tab.run(NAMES)[1] == "already named"
    strange = {**saved, "edits": [{"kind": "split", "cluster": 0, "parts": []}]}
    assert "not on this page" in load(tab, tmp_path, strange)
    assert load(tab, tmp_path, {**saved, "edits": []}) == "0 corrections loaded"
    assert tab.run(NAMES) == ["", "already named", ""]
    names = {"format": 1, "clusters": {"3": "last", "1": "empty"}}  # as earlier pages saved them
    assert load(tab, tmp_path, names) == "3 corrections loaded"
    assert tab.run(NAMES) == ["", "", "last"]


def test_what_the_page_saves_the_command_takes(open_page, browser, usual, usual_facts, tmp_path):
    """Names, clusters that are one, and images that belong elsewhere: by keyboard too."""
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab = open_page(usual)
    tab.type("[data-cluster='3'] input", "\N{CAT FACE} and \u202erest")
    set_to(tab, "[data-cluster='2'] select", "0")
    first = "document.querySelector('[data-cluster=\"0\"] [data-row]')"
    row = int(tab.run(f"{first}.dataset.row"))
    tab.run(f"{first}.focus()")
    tab.press("Enter")
    tab.wait("document.getElementById('one').open")
    set_to(tab, "#one-to", "none")
    tab.press("Escape")
    tab.wait("!document.getElementById('one').open")
    assert tab.run(f"{first}.classList.contains('moved')")
    other = "[data-cluster='0'] .group + .group [data-row]"
    moved = int(tab.run(f"document.querySelector({json.dumps(other)}).dataset.row"))
    if moved != row:
        tab.click_on(other)
        set_to(tab, "#one-to", "3")
        tab.click_on("#one-close")
    tab.click_on("#save")
    saved = saved_file(browser, tmp_path)
    assert "corrections saved as edits.json" in text(tab, "#said")
    (tmp_path / "edits.json").write_text(json.dumps(saved))
    answers = of(usual_facts)
    found = corrected(read_edits(tmp_path / "edits.json", answers), answers)
    assert found.names == {3: "\N{CAT FACE} and \u202erest"}
    assert found.clusters[row] == OUTSIDE
    assert moved == row or found.clusters[moved] == 3
    assert not (found.clusters == 2).any()
    tab = open_page(usual)
    n = len(saved["edits"])
    assert load(tab, tmp_path, saved) == f"{n} corrections loaded"
    tab.click_on("#save")
    assert saved_file(browser, tmp_path) == saved


def test_the_map_shows_pins_and_isolates(open_page, usual):
    tab = open_page(usual)
    middle = in_the_middle(tab)
    everything = painted(tab)
    assert everything > 0
    tab.mouse("Moved", *middle)
    assert "image-0cluster 0, share 0.60class zebra" in text(tab, "#hovered")
    tab.click(*middle)
    assert "image-0" in text(tab, "#pins")
    assert tab.run("document.querySelectorAll('#pins canvas').length") == 1
    tab.click(*middle)
    assert text(tab, "#pins") == ""
    tab.mouse("Moved", 2, 2)
    assert text(tab, "#hovered") == ""
    before = painted(tab)
    tab.click_on("#legend button:nth-child(3)")
    assert text(tab, "#legend [aria-pressed=true]") == "34"  # cluster 3, four images of it
    assert painted(tab) < before / 3
    in_the_middle(tab)
    tab.click(*middle)  # what is faint cannot be pinned
    assert text(tab, "#pins") == ""
    tab.click_on("#legend button:nth-child(3)")
    tab.mouse("Moved", 2, 2)
    assert painted(tab) == before
    set_to(tab, "#colour", "class")
    assert text(tab, "#legend") == "ape20cow4zebra15"
    set_to(tab, "#layout", "PCA")
    in_the_middle(tab)
    tab.click(*middle)
    assert "image-0" in text(tab, "#pins")


def test_the_map_by_keyboard_and_close_up(open_page, usual):
    tab = open_page(usual)
    tab.run("document.getElementById('plane').focus()")
    tab.press("ArrowRight")
    assert "image-0" in text(tab, "#hovered")
    tab.press("ArrowRight")
    other = text(tab, "#hovered .what bdi")
    assert other != "image-0"
    tab.press("Enter")
    assert other in text(tab, "#pins")
    tab.press("Escape")
    assert text(tab, "#pins") + text(tab, "#hovered") == ""
    dots = painted(tab)
    tab.click_on("#pictures")
    assert painted(tab) > 2 * dots
    for _ in range(3):
        tab.click_on("#closer")
    middle = in_the_middle(tab)
    tab.mouse("Pressed", *middle, button="left", clickCount=1)
    tab.mouse("Moved", middle[0] + 80, middle[1], button="left", buttons=1)
    tab.mouse("Released", middle[0] + 80, middle[1], button="left", clickCount=1)
    assert text(tab, "#pins") == ""  # that was a drag
    tab.click(middle[0] + 80, middle[1])
    assert "image-0" in text(tab, "#pins")
    tab.click_on("#whole")
    in_the_middle(tab)
    tab.click(*middle)
    assert text(tab, "#pins") == ""


def test_a_cell_lists_its_images_or_says_that_none_is_at_hand(open_page, usual):
    tab = open_page(usual)
    cells = tab.run(
        "[...document.querySelectorAll('[data-cell]')]"
        ".map((it) => [it.textContent, it.dataset.cell])"
    )
    assert sorted(int(count) for count, _ in cells) == [1, 4, 5, 15, 15]
    counts = dict(cells)
    tab.click_on("[data-cell]")
    assert tab.run("document.querySelectorAll('#cell canvas').length") > 0
    yak = counts["1"]
    tab.click_on(f"[data-cell='{yak}']")
    assert text(tab, "#cell") == (
        "Class yak in cluster 3: 1 image. None of them is in the sample on the map."
    )
    five = counts["5"]
    tab.click_on(f"[data-cell='{five}']")
    assert "Class ape in cluster 0: 5 images." in text(tab, "#cell")
    assert tab.run("document.querySelectorAll('#cell canvas').length") == 5
    assert tab.run("document.querySelectorAll('.confusion [aria-pressed=true]').length") == 1


def test_light_and_dark(open_page, usual):
    ground = "getComputedStyle(document.body).backgroundColor"
    seen = "getComputedStyle(document.querySelector('figure .on-dark')).display"
    light, dark = open_page(usual), open_page(usual, dark=True)
    assert light.run(ground) == "rgb(244, 246, 248)"
    assert dark.run(ground) == "rgb(20, 23, 27)"
    assert [tab.run(seen) for tab in (light, dark)] == ["none", "block"]
    # A printer's paper is light, whatever the screen is; the controls stay behind.
    dark.call("Emulation.setEmulatedMedia", media="print")
    assert dark.run(ground) == "rgba(0, 0, 0, 0)"
    assert dark.run("getComputedStyle(document.querySelector('.controls')).display") == "none"


def test_without_scripts_the_first_clusters_still_show(browser, usual):
    tab = Tab(browser)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(usual)
    assert tab.run("document.documentElement.classList.contains('live')") is False
    visible = "(it) => it.offsetParent !== null"
    assert tab.run(f"[...document.querySelectorAll('.cluster img')].filter({visible}).length") == 58
    assert tab.run(f"[...document.querySelectorAll('input, select')].filter({visible}).length") == 0
    assert tab.run(f"[...document.querySelectorAll('.given')].filter({visible}).length") == 3
    tab.close()


@pytest.fixture(scope="module")
def hostile(make_facts, flat_images, write_page):
    facts = make_facts(
        [0, 0, 1, 1, 1, 2],
        n_clusters=3,
        targets=[HOSTILE, LONG, HOSTILE, "plain", LONG, "plain"],
        names=[HOSTILE, LONG, "\u202egnp.exe", "c", "d", "e"],
        cluster_names={0: HOSTILE, 1: LONG, 2: "\u2066"},
        skipped=[(HOSTILE, HOSTILE), (LONG, LONG)],
    )
    facts.config["data.source"] = HOSTILE + LONG
    facts.metrics["device"] = HOSTILE
    facts.metrics["baselines"] = {HOSTILE: facts.metrics["scores"], LONG: {}}
    facts.history[-1]["warnings"] = [HOSTILE, LONG]
    return write_page("hostile", facts, flat_images(facts).images, circle(range(6)))


def test_hostile_names_run_nothing(open_page, hostile):
    tab = open_page(hostile)
    tab.type("[data-cluster='2'] input", "<img src=x onerror=window.ran=1>")
    set_to(tab, "#colour", "class")
    tab.click(*in_the_middle(tab))
    tab.click_on("[data-cell]")
    for field in ("#find", "[data-cluster='1'] input"):
        set_to(tab, field, HOSTILE[:90])
    assert HOSTILE in text(tab, "#pins")
    assert tab.run("window.ran") is None
    assert tab.run("document.scripts.length") == 2
    assert tab.run("document.querySelectorAll('[onerror], img:not([src^=\"data:\"])').length") == 0


def test_no_other_script_may_run(open_page, usual):
    tab = open_page(usual)
    tab.may_complain = True
    tab.run(
        """(() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = 1";
          document.body.append(script);
          document.body.setAttribute("onclick", "window.ran = 1");
          document.body.click();
          const image = Object.assign(new Image(), { src: "https://example.org/x.png" });
          return new Promise((done) => { image.onload = image.onerror = done; }).then(() => 0);
        })()"""
    )
    assert tab.run("window.ran") is None
    assert len(tab.complaints) >= 3  # the script, the attribute, the image
    assert not any(url.startswith("http") for url in tab.requests)


@pytest.fixture(scope="module")
def many(make_facts, write_page):
    """199 clusters in use, colour images, and one image in most clusters."""
    random = np.random.default_rng(0)
    assignments = [*range(199), *random.integers(0, 199, 401).tolist()]
    facts = make_facts(
        assignments, n_clusters=200, targets=[f"class {number % 45}" for number in range(600)]
    )
    images = random.integers(0, 256, (600, 32, 32, 3), np.uint8)
    return write_page("many", facts, images, circle(range(600)))


def test_200_clusters(open_page, many):
    tab = open_page(many)
    assert len(shown(tab)) == 199
    last = "[...document.querySelectorAll('.cluster')].at(-1)"
    assert tab.run(f"{last}.querySelectorAll('canvas').length") == 0
    tab.run(f"{last}.scrollIntoView()")
    tab.wait(f"{last}.querySelectorAll('canvas').length")
    tab.wait(
        f"""[...{last}.querySelectorAll('canvas')].every((it) =>
          it.getContext("2d").getImageData(9, 9, 1, 1).data[3] === 255)"""
    )
    assert tab.run("document.querySelectorAll('#legend button').length") == 199
    tab.click_on("tbody tr:last-child td:last-child [data-cell], tbody td:last-child [data-cell]")
    assert "in the other clusters" in text(tab, "#cell")


def test_no_page_is_wider_than_a_phone(open_page, usual, hostile, many):
    for file in (usual, hostile, many):
        tab = open_page(file, width=360, height=740)
        tab.resize(360, 740, mobile=True)
        in_the_middle(tab)
        tab.click_on("[data-cell]")
        assert tab.run("document.documentElement.scrollWidth") == 360, file.name
        assert tab.run("window.innerWidth") == 360, file.name


def test_one_cluster_nothing_known_and_nothing_at_hand(open_page, make_facts, write_page):
    facts = make_facts([0, 0, 0], n_clusters=2)
    facts.metrics["n_clusters"] = 1
    tab = open_page(write_page("bare", facts, None))
    assert shown(tab) == [0]
    assert "so there is no map" in text(tab, "#map")
    assert "No images." in text(tab, "#gallery")
    assert "without targets" in text(tab, "#headline")
    assert tab.run("document.getElementById('confusion')") is None
    tab = open_page(write_page("dots", facts, None, circle(range(3))))
    tab.click(*in_the_middle(tab))
    assert "image-0cluster 0, share" in text(tab, "#pins")
    assert tab.run("document.querySelectorAll('#pins canvas').length") == 0
    assert painted(tab) > 0
