"""The viewer in a real browser: look, sort, open, search, by mouse and by keyboard."""

import json
import time

import numpy as np
from viewer_pages import TITLES, choose, edited, pick, text, tiles, wait_for_tiles
from viewer_runs import HOSTILE, photo, write_run


def many(tmp_path, n_images, n_clusters=3):
    """One file, under many names: a list may name no file twice, but links are files."""
    folder = tmp_path / "many"
    folder.mkdir()
    for shade in range(4):
        photo(40 * shade + 60).save(folder / f"a-{shade}.jpg")
    names = [f"{row:05d}.jpg" for row in range(n_images)]
    for row, name in enumerate(names):
        (folder / name).hardlink_to(folder / f"a-{row % 4}.jpg")
    for shade in range(4):
        (folder / f"a-{shade}.jpg").unlink()
    random = np.random.default_rng(0)
    clusters = random.integers(0, n_clusters, n_images)
    sure = random.uniform(0.3, 1, n_images)
    return write_run(
        tmp_path / "run", names, clusters, source=folder, confidence=sure, n_clusters=n_clusters
    )


def test_from_the_front_to_an_image_at_full_size(open_view, client, names):
    tab = open_view(client)
    tab.wait("document.querySelectorAll('.cluster').length === 3")
    assert client.server.token not in tab.run("location.href")
    assert "images12" in text(tab, "#headline")
    assert "exact copies1" in text(tab, "#headline")
    tab.click_on("[href='#view=cluster&cluster=1']")
    wait_for_tiles(tab)
    assert text(tab, "#title") == "cluster 1"
    inside = {names[row] for row in range(12) if row % 3 == 1}
    assert {title.replace("\\u202e", "\u202e") for title in tiles(tab)} == inside
    choose(tab, "#order", "name")
    tab.wait("location.hash.includes('order=name')")
    ordered = sorted(inside, key=lambda name: name.rpartition("/")[2])
    shown = [name.replace("\u202e", "\\u202e") for name in ordered]
    tab.wait(f"{TITLES}.join('|') === {json.dumps('|'.join(shown))}")
    wanted = next(at for at, name in enumerate(ordered) if name.startswith("trip/"))
    tab.click_on(f"#tile-{wanted}")
    tab.wait("document.getElementById('full').naturalWidth === 300")
    assert text(tab, "#name") == ordered[wanted].rpartition("/")[2]
    tab.wait("document.getElementById('size').textContent.includes(' 200 pixels, shown ')")
    assert tab.run("document.getElementById('full').getBoundingClientRect().width % 300") == 0
    tab.click_on("#full")  # as large as it is
    assert tab.run("document.getElementById('full').getBoundingClientRect().width") == 300
    assert "softmax share" in text(tab, "#facts")
    tab.wait("document.querySelectorAll('#near button').length === 11")
    tab.click_on("#near button")
    tab.wait("document.getElementById('place').textContent === '2 of 12'")
    tab.press("Escape")
    tab.wait("!document.getElementById('image').open")


def test_by_keyboard_alone(open_view, client, names):
    tab = open_view(client, "#view=all&order=name&once=0")
    wait_for_tiles(tab)
    by_name = sorted(names, key=lambda name: name.rpartition("/")[2])
    tab.run("document.getElementById('grid').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        tab.press(key)
    tab.wait("document.getElementById('image').open")
    told = [name.rpartition("/")[2].replace("\u202e", "\\u202e") for name in by_name]
    tab.wait(f"document.getElementById('name').textContent === {json.dumps(told[1])}")
    tab.press("ArrowRight")
    tab.wait(f"document.getElementById('name').textContent === {json.dumps(told[2])}")
    tab.press("Escape")
    tab.wait("document.activeElement.id === 'grid'")
    tab.wait("document.activeElement.getAttribute('aria-activedescendant') === 'tile-2'")
    tab.press("End")
    tab.press("Enter")
    tab.wait(f"document.getElementById('name').textContent === {json.dumps(told[-1])}")


def test_hostile_names_and_drawings_run_nothing(open_view, client, names):
    tab = open_view(client, "#view=all&once=0")
    wait_for_tiles(tab)
    assert len(tiles(tab)) == 12
    assert tab.run("document.querySelectorAll('.tile.bad').length") == 1
    for find in ("onerror", "vector"):
        tab.type("#find", find)
        tab.wait(f"location.hash.includes('find={find}')")
        tab.wait(f"{TITLES}.length === 1 && {TITLES}[0].includes('{find}')")
        wait_for_tiles(tab)
        tab.click_on("#tile-0")
        tab.wait("document.querySelectorAll('#near button').length")
        if find == "onerror":
            assert text(tab, "#name") == HOSTILE.replace("\u202e", "\\u202e")
            assert "taken" not in text(tab, "#facts")  # which its EXIF does not tell
        else:
            tab.wait("!document.getElementById('unreadable').hidden")
            assert "cannot be shown" in text(tab, "#unreadable")
        tab.press("Escape")
        tab.wait("!document.getElementById('image').open")
    assert tab.run("typeof window.ran") == "undefined"
    assert names  # the fixture's


def test_copies_are_a_group(open_view, client):
    tab = open_view(client, "#view=copies")
    tab.wait("document.querySelectorAll('.group .pick img').length === 2")
    tab.wait("document.querySelector('.group').textContent.includes('copy of 2.jpg')")


def test_another_origin_gets_nothing(open_view, client, serve, run):
    """A page of another port, which is the same site, has our cookie sent and sees nothing."""
    tab = open_view(client)
    tab.wait("document.querySelectorAll('.cluster').length === 3")
    other = f"http://127.0.0.1:{client.server.server_port}"
    stranger = serve(run)
    tab = open_view(stranger)
    tab.is_strange = True
    tab.wait("document.querySelectorAll('.cluster').length === 3")
    tab.call("Page.setBypassCSP", enabled=True)
    tab.visit(stranger.server.address)
    seen = tab.run(
        f"""(async () => {{
          const asked = fetch('{other}/overview', {{ credentials: 'include' }});
          const read = await asked.then((answer) => answer.text(), () => 'refused');
          const image = new Image();
          const shown = await new Promise((done) => {{
            image.onload = () => done('shown');
            image.onerror = () => done('refused');
            image.src = '{other}/thumbnail/0';
          }});
          return [read, shown];
        }})()"""
    )
    assert seen == ["refused", "refused"]


def test_no_page_is_wider_than_a_phone(open_view, client):
    for part in ("", "#view=all", "#view=copies", "#view=find&find=onerror"):
        tab = open_view(client, part, width=360, height=740)
        tab.resize(360, 740, mobile=True)
        time.sleep(0.3)
        assert tab.run("document.documentElement.scrollWidth") == 360, part


def test_only_what_is_in_sight_is_in_the_document(open_view, serve, tmp_path):
    client = serve(many(tmp_path, 3000))
    tab = open_view(client, "#view=all&order=name&once=0")
    wait_for_tiles(tab)
    assert tab.run("document.querySelectorAll('.tile').length") < 100
    tab.run("document.getElementById('grid').scrollTop = 1e9")
    tab.wait("[...document.querySelectorAll('.tile')].some((tile) => tile.title === '02999.jpg')")
    wait_for_tiles(tab)
    assert tab.run("document.querySelectorAll('.tile').length") < 100
    assert tiles(tab)[-1] == "02999.jpg"
    tab.resize(500, 900)
    wait_for_tiles(tab)
    assert tab.run("document.querySelectorAll('.tile').length") < 150


def test_names_moves_merges_and_undo(open_view, serve, run, names):
    client = serve(run)
    tab = open_view(client, "#view=cluster&cluster=1&order=folder")
    wait_for_tiles(tab)
    before = tiles(tab)
    tab.type("#rename", "trips </script>")
    tab.press("Tab")
    tab.run("document.getElementById('grid').focus()")
    tab.wait("document.getElementById('title').textContent === '1 · trips </script>'")
    for key in ("Home", " ", "ArrowRight", " "):
        tab.press(key)
    tab.wait("document.getElementById('n-chosen').textContent === '2 selected'")
    pick(tab, "#move", "2")
    tab.wait(f"document.getElementById('count').textContent.startsWith('{len(before) - 2} ')")
    wait_for_tiles(tab)
    assert tiles(tab) == before[2:]
    tab.click_on("#tile-0")
    for above_the_button in ("facts", "size"):  # and push it down as they come
        tab.wait(f"document.getElementById('{above_the_button}').textContent")
    tab.click_on("#outside-one")
    tab.wait("document.getElementById('facts').textContent.includes('belongs to none')")
    tab.press("Escape")
    tab.wait("document.getElementById('views').textContent.includes('Belongs to none 1')")
    pick(tab, "#merge", "0")
    tab.wait("document.getElementById('count').textContent.startsWith('0 ')")
    assert [edit["kind"] for edit in edited(run)] == ["name", "move", "outside", "merge"]
    assert edited(run)[1]["images"] == [[names.index(title), title] for title in before[:2]]
    tab = open_view(serve(run), "#view=cluster&cluster=1&order=folder")  # after a restart
    tab.wait("document.getElementById('undo').textContent === 'undo: merge into cluster 0'")
    for _ in range(3):
        shown = text(tab, "#undo")
        tab.click_on("#undo")
        tab.wait(f"document.getElementById('undo').textContent !== {json.dumps(shown)}")
    tab.wait(f"document.getElementById('count').textContent.startsWith('{len(before)} ')")
    assert [edit["kind"] for edit in edited(run)] == ["name"]
