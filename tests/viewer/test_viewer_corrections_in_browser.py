"""Corrections in a real browser: by mouse, by keyboard, and of as many images as people have."""

import io
import json
import time

import numpy as np
import pytest
from viewer_pages import edited, pick, text, tiles, wait_for_tiles
from viewer_runs import photo, write_run

LONGEST_TASK = 50
"""Milliseconds of the processor: on a machine with nothing else to do, a frame has some more."""


KEY = """globalThis.key = (selector, name) => document.querySelector(selector)
  .dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }))"""


def grouped_run(tmp_path, n_each=12):
    """Cluster 0 holds two kinds of photos, cluster 1 another; every file is one of its own."""
    random = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], n_each)
    features = 4 * np.eye(8)[kinds] + 0.3 * random.normal(size=(len(kinds), 8))
    folder = tmp_path / "photos"
    folder.mkdir()
    names = [f"{row:03d}.jpg" for row in range(len(kinds))]
    for row, name in enumerate(names):
        photo(40 + 60 * int(kinds[row]), (64, 48 + row)).save(folder / name)
    clusters = np.where(kinds == 2, 1, 0)
    return write_run(tmp_path / "run", names, clusters, source=folder, features=features), kinds


SIZES = """[...document.querySelectorAll('#split-parts article')].map((part) =>
  Number(part.querySelector('.quiet').textContent.split(' ')[0].replace(',', '')))"""


def test_a_cluster_is_split_into_what_its_features_suggest(open_view, serve, tmp_path):
    run, kinds = grouped_run(tmp_path)
    tab = open_view(serve(run), "#view=cluster&cluster=0")
    wait_for_tiles(tab)
    tab.click_on("#split")
    tab.wait(f"{SIZES}.join() === '12,12'")
    assert not edited(run)  # nothing is changed before the person says so
    assert text(tab, "#split-accept") == "make 1 new cluster"
    shown = tab.run(
        """[...document.querySelectorAll('#split-parts article')].map((part) =>
          [...part.querySelectorAll('[data-row]')].map((tile) => Number(tile.dataset.row)))"""
    )
    assert [len(set(kinds[part])) for part in shown] == [1, 1]

    tab.run("document.querySelector('[data-part=\"1\"] [data-row]').focus()")
    tab.press(" ")  # one image goes to the other part
    tab.wait("document.getElementById('split-n-chosen').textContent.startsWith('1 selected')")
    tab.click_on("#split-move")
    tab.wait(f"{SIZES}.join() === '13,11'")
    tab.type("[data-part='1'] input[type=text]", "owls")
    tab.click_on("#split-accept")
    tab.wait("location.hash === '#view=cluster&cluster=0'")
    tab.wait("document.getElementById('count').textContent.startsWith('13 ')")
    split, named = edited(run)
    assert (split["kind"], split["cluster"], len(split["parts"][0])) == ("split", 0, 11)
    assert (named["cluster"], named["name"]) == (3, "owls")
    tab = open_view(serve(run))  # after a restart
    tab.wait("document.getElementById('clusters').textContent.includes('3 · owls')")
    for _ in range(2):  # at once: the second is of what the first leaves
        tab.click_on("#undo")
    tab.wait("document.getElementById('undo').hidden")
    assert edited(run) == []


def test_parts_are_changed_or_dropped(open_view, serve, tmp_path):
    run, _ = grouped_run(tmp_path)
    tab = open_view(serve(run), "#view=split&cluster=0&n=4")
    tab.wait(f"{SIZES}.length === 4")
    assert sum(tab.run(SIZES)) == 24
    tab.click_on("[data-part='2'] input[type=checkbox]")
    assert text(tab, "#split-accept") == "make 2 new clusters"
    tab.click_on("#split-drop")
    tab.wait("location.hash === '#view=cluster&cluster=0'")
    assert edited(run) == []


def test_every_correction_by_keyboard_alone(open_view, serve, tmp_path):
    run, _ = grouped_run(tmp_path)
    tab = open_view(serve(run), "#view=cluster&cluster=0&order=name")
    wait_for_tiles(tab)
    tab.press("?")
    tab.wait("document.getElementById('help').open")
    tab.click_on("#help-close")
    tab.press("n")
    tab.wait("document.activeElement.id === 'rename'")
    tab.call("Input.insertText", text="cats")
    tab.press("Enter")
    tab.wait("document.getElementById('title').textContent === '0 · cats'")

    def select(*places):
        tab.run("document.getElementById('grid').focus()")
        tab.press("Home")
        for place in range(max(places) + 1):
            if place in places:
                tab.press(" ")
            tab.press("ArrowRight")
        tab.wait(f"document.getElementById('n-chosen').textContent === '{len(places)} selected'")

    def left(n_images):  # the grid has them: what is selected from now on stays
        tab.wait(f"document.getElementById('count').textContent === '{n_images} images'")

    def undone(n_edits):
        tab.press("u")
        tab.wait(f"document.getElementById('undo').hidden === {str(not n_edits).lower()}")

    select(0, 2)
    tab.press("m")
    tab.wait("document.getElementById('picker').open")
    for key in ("ArrowDown", "ArrowUp", "ArrowDown", "Enter"):  # the first is a new cluster
        tab.press(key)
    tab.wait("document.getElementById('undo').textContent === 'undo: move 2 images to cluster 1'")
    assert not tab.run("document.getElementById('picker').open")
    left(22)
    select(0)
    tab.press("x")
    tab.wait("document.getElementById('undo').textContent === 'undo: 1 image to no cluster'")
    left(21)
    for key, kind in (("t", "together"), ("a", "apart")):
        select(0, 1)
        tab.press(key)
        tab.wait(f"document.getElementById('undo').textContent === 'undo: 2 images {kind}'")
    tab.run("document.getElementById('grid').focus()")
    tab.press("g")
    tab.wait("document.getElementById('picker').open")
    tab.run(f"{KEY}; key('#picker-find', 'Escape'); key('#grid', 'g')")  # before it is told
    tab.run("new Promise((done) => setTimeout(done, 50))")
    assert tab.run("document.getElementById('picker').open")
    tab.press("Escape")
    tab.wait("!document.getElementById('picker').open")
    tab.press("g")
    tab.wait("document.getElementById('picker').open")
    tab.press("Enter")
    tab.wait("document.getElementById('undo').textContent === 'undo: merge into cluster 1'")
    kinds = ["name", "move", "outside", "together", "apart", "merge"]
    assert [edit["kind"] for edit in edited(run)] == kinds
    assert edited(run)[1]["images"] == [[0, "000.jpg"], [2, "002.jpg"]]
    tab.press("z", modifiers=2)
    tab.wait("document.getElementById('undo').textContent === 'undo: 2 images apart'")
    tab.run("document.getElementById('grid').focus()")
    tab.press("s")
    tab.wait(f"{SIZES}.length === 2")
    tab.press("c")
    tab.wait("!document.getElementById('front').hidden")
    tab.press("e")
    tab.wait("!document.getElementById('export').hidden")
    for n_left in (4, 3, 2, 1, 0):
        undone(n_left)
    assert edited(run) == []
    assert run.read_names() == {}


def test_an_image_that_stands_for_its_copies_takes_them_along(open_view, serve, run, names):
    """Both copies are in cluster 0: one is shown, with their number."""
    one, other = names.index("trip/2.jpg"), names.index("trip/copy of 2.jpg")
    client = serve(run)
    tab = open_view(client, "#view=all&once=0&order=name")
    wait_for_tiles(tab)
    assert len(tiles(tab)) == 12
    tab.click_on("#once")
    tab.wait("document.getElementById('count').textContent.startsWith('11 ')")
    clusters = {one: one % 3, other: other % 3}
    version = json.loads(client.ask("/overview").content)["version"]
    assert version == ""
    for row in clusters:  # as moved there before
        body = {"version": version, "edit": {"kind": "move", "rows": [row], "to": 0}}
        sent = {"Content_Type": "application/json", "Origin": f"http://{client.server.hosts[0]}"}
        answer = client.ask("/edits", method="POST", body=json.dumps(body).encode(), **sent)
        version = json.loads(answer.content)["version"]
    tab = open_view(client, "#view=cluster&cluster=0&order=name")
    wait_for_tiles(tab)
    assert tab.run("document.querySelectorAll('.badge:not([hidden])').length") == 1
    place = tab.run(
        """[...document.querySelectorAll('.tile:not([hidden])')]
          .find((tile) => tile.querySelector('.badge').textContent === '\u00d72').id"""
    )
    tab.run("document.getElementById('choose').click()")
    tab.click_on(f"#{place}")
    pick(tab, "#move", "2")
    tab.wait("document.getElementById('undo').textContent === 'undo: move 2 images to cluster 2'")
    assert [row for row, _ in edited(run)[-1]["images"]] == sorted(clusters)


SLOW_ANSWERS = """(() => {
  const plain = window.fetch;
  window.fetch = async (url, how) => {
    const answer = await plain(url, how);
    const isAsked = String(url).includes("/export") && (how || {}).method !== "POST";
    if (isAsked) await new Promise((done) => setTimeout(done, 400));
    return answer;
  };
  location.hash = "#view=images";
  setTimeout(() => { location.hash = "#view=export"; }, 100);
})()"""


def test_an_answer_of_before_an_export_does_not_hide_what_comes_of_it(
    open_view, serve, run, tmp_path
):
    tab = open_view(serve(run), "#view=export")
    tab.wait("document.getElementById('export-where').value")
    tab.run(SLOW_ANSWERS)
    tab.wait("location.hash === '#view=export'")
    tab.type("#export-where", str(tmp_path / "out"))
    time.sleep(0.5)  # now the page asks how far an export is that has not begun
    tab.click_on("#export-start")
    tab.wait("document.getElementById('export-says').textContent.includes('table.csv')")


def test_export_on_the_page(open_view, serve, run, tmp_path):
    tab = open_view(serve(run), "#view=export")
    tab.wait("document.getElementById('export-where').value")
    tab.type("#export-where", str(tmp_path / "out"))
    tab.click_on("#export-xmp")
    tab.click_on("#export-start")
    tab.wait("document.getElementById('export-says').textContent.includes('12 files copied')")
    assert (tmp_path / "out" / "table.csv").exists()
    assert len(list((tmp_path / "out" / "xmp").rglob("*.xmp"))) == 12
    tab.click_on("#export-start")
    tab.wait("document.getElementById('export-says').textContent.includes('table.csv exists')")
    tab.complaints.clear()
    tab.is_strange = True  # the refusal is told on the console, too


def many_run(tmp_path, n_images):
    """Three kinds in two clusters; a few pictures, each file with bytes of its own behind."""
    folder = tmp_path / "photos"
    encoded = []
    for shade in range(12):
        content = io.BytesIO()
        photo(20 * shade + 20).save(content, "JPEG")
        encoded.append(content.getvalue())
    names = [f"{row // 1000:02d}/{row:05d}.jpg" for row in range(n_images)]
    for row, name in enumerate(names):
        if row % 1000 == 0:
            (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(encoded[row % 12] + row.to_bytes(4, "little"))
    random = np.random.default_rng(0)
    kinds = random.integers(0, 3, n_images)
    features = (4 * np.eye(16)[kinds] + random.normal(size=(n_images, 16))).astype(np.float32)
    sample = np.sort(random.choice(n_images, 5000, replace=False))
    run = write_run(
        *(tmp_path / "run", names, np.minimum(kinds, 1)),
        source=folder,
        features=features,
        confidence=random.uniform(0.3, 1, n_images),
        sample_rows=sample,
    )
    run.write_features(features.astype(np.float16))
    return run, kinds


SCROLL = """(() => {
  const grid = document.getElementById("grid");
  let n = 0;
  window.isDone = false;
  requestAnimationFrame(function step() {
    grid.scrollTop += grid.clientHeight;
    window.isDone = ++n === 120;
    if (!window.isDone) requestAnimationFrame(step);
  });
})()"""


@pytest.mark.slow
def test_13_000_images_are_looked_at_and_corrected(open_view, serve, tmp_path):
    run, kinds = many_run(tmp_path, 13_000)
    sizes = [int((kinds == 0).sum()), int((kinds > 0).sum())]
    tab = open_view(serve(run), "")
    tab.wait("document.querySelectorAll('.cluster').length === 2")
    assert "images13,000" in text(tab, "#headline")
    tab.click_on("[href='#view=cluster&cluster=1']")
    wait_for_tiles(tab)
    assert text(tab, "#count") == f"{sizes[1]:,} images"

    def scrolled():
        tab.run(SCROLL)
        tab.wait("window.isDone")

    tasks = tab.trace(scrolled)
    assert len(tasks) > 200
    assert max(task.get("tdur", 0) for task in tasks) / 1000 < LONGEST_TASK
    assert tab.run("document.querySelectorAll('.tile').length") < 150

    tab.run("location.hash = '#view=cluster&cluster=1&order=name'")
    first = int(np.flatnonzero(kinds > 0)[0])
    tab.wait(f"document.getElementById('tile-0')?.title.endsWith('{first:05d}.jpg')")
    wait_for_tiles(tab)
    shown = [int(title[3:8]) for title in tiles(tab)]
    assert shown == sorted(shown)
    tab.click_on("#tile-0")
    tab.wait("document.getElementById('full').naturalWidth === 300")
    tab.wait("document.querySelectorAll('#near button').length === 24")  # of any image
    tab.press("Escape")
    tab.wait("!document.getElementById('image').open")

    tab.click_on("#split")
    tab.wait(f"{SIZES}.length === 2")
    wanted = sorted([int((kinds == 1).sum()), int((kinds == 2).sum())], reverse=True)
    assert np.abs(np.array(tab.run(SIZES)) - wanted).max() < 0.02 * sizes[1]
    tab.click_on("#split-accept")
    tab.wait("document.getElementById('undo').textContent.startsWith('undo: split')")
    tab.wait("location.hash.includes('view=cluster')")
    wait_for_tiles(tab)
    tab.run("document.getElementById('grid').focus()")
    tab.press("a", modifiers=2)
    left = int(text(tab, "#count").partition(" ")[0].replace(",", ""))
    tab.wait(f"document.getElementById('n-chosen').textContent === '{left:,} selected'")
    tab.press("m")
    tab.wait("document.getElementById('picker').open")
    tab.call("Input.insertText", text="0")
    tab.press("Enter")
    tab.wait(
        f"document.getElementById('undo').textContent === 'undo: move {left:,} images to cluster 0'"
    )
    tab.run("location.hash = '#view=cluster&cluster=3'")
    tab.wait("document.getElementById('title').textContent === 'cluster 3'")
    pick(tab, "#merge", "0")
    tab.wait("document.getElementById('undo').textContent === 'undo: merge into cluster 0'")
    tab.call("Page.reload")
    tab.wait("document.getElementById('undo')?.textContent === 'undo: merge into cluster 0'")
    for kind in ("move", "split"):
        tab.click_on("#undo")
        tab.wait(f"document.getElementById('undo').textContent.startsWith('undo: {kind}')")
    tab.click_on("#undo")
    tab.wait("document.getElementById('undo').hidden")
    assert edited(run) == []
