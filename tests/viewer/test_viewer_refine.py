"""The button "refine": a process of its own that the page follows."""

import json
import time

import numpy as np
import pytest
from viewer_pages import wait_for_tiles

from corrected_runs import answers_of, correct, trained_on_images
from dcdc.run_folder import RunFolder
from devtools import Tab

NONE = {"run": None, "look": None}


def posted(client, **headers):
    origin = f"http://{client.server.hosts[0]}"
    headers = {"Origin": origin, "Content_Type": "application/json"} | headers
    return client.ask("/refine", method="POST", body=b"{}", **headers)


def told(client):
    return json.loads(client.ask("/refine").content)


def followed(client):
    """What is told when it has ended."""
    end = time.monotonic() + 120
    while (found := told(client))["is_at_work"]:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_nothing_is_at_work_unless_asked_for(client, tmp_path):
    assert told(client) == {"is_at_work": False, "says": "", "failed": False} | NONE
    assert posted(client, Origin="http://evil.example").status == 403
    assert posted(client, Cookie="").status == 403
    assert posted(client, Content_Type="text/plain").status == 415
    assert not told(client)["is_at_work"]
    assert not (tmp_path / "run-refined").exists()


@pytest.mark.slow  # a process of its own
def test_what_cannot_be_learnt_is_told_and_leaves_nothing(client, tmp_path):
    assert posted(client).status == 200
    found = followed(client)
    assert found["failed"]
    assert "no edits to learn from" in found["says"]
    assert found["run"] is None
    assert not (tmp_path / "run-refined").exists()


@pytest.mark.slow
def test_a_new_run_beside_the_viewed_one(serve, mixed_run, tmp_path):
    correct(mixed_run, {"kind": "move", "to": 2, "rows": [2, 5, 8, 11]})
    before = {path: path.read_bytes() for path in mixed_run.rglob("*") if path.is_file()}
    client = serve(RunFolder.open(mixed_run))
    assert posted(client).status == 200
    assert posted(client).status == 200  # one at a time
    found = followed(client)
    assert (found["failed"], found["run"]) == (False, str(tmp_path / "mixed-run-refined"))
    assert (answers_of(tmp_path / "mixed-run-refined").clusters[[2, 5, 8, 11]] == 2).all()
    assert not (tmp_path / "mixed-run-refined-2").exists()
    assert {path: path.read_bytes() for path in mixed_run.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_by_a_click(serve, mixed_image_run, tmp_path, browser):
    correct(mixed_image_run, {"kind": "move", "to": 2, "rows": [0, 3, 6, 9]})
    client = serve(RunFolder.open(mixed_image_run))
    tab = Tab(browser).visit(client.server.address)
    tab.wait("document.getElementById('run').textContent")
    assert str(tmp_path / "mixed-image-run-refined") in refined_by_click(tab)
    assert not tab.run("document.getElementById('refine').disabled")
    assert not tab.complaints
    tab.close()


def refined_by_click(tab):
    """What the page says then."""
    tab.click_on("#refine")
    says = "document.getElementById('refine-says').textContent"
    end = time.monotonic() + 120
    while not (found := tab.run(says)).startswith("Refined: "):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


@pytest.mark.slow
def test_13_000_images_after_a_move_on_the_page(serve, tmp_path, browser):
    run = RunFolder.open(trained_on_images(tmp_path, 13_000, batch_size=256))
    of_one = np.flatnonzero(run.read_answers().clusters == 1)
    tab = Tab(browser).visit(f"{serve(run).server.address}#view=cluster&cluster=1&order=name")
    wait_for_tiles(tab)
    tab.run("document.getElementById('grid').focus()")
    tab.press("Home")
    tab.press(" ")
    tab.wait("document.getElementById('n-chosen').textContent === '1 selected'")
    tab.press("m")
    tab.wait("document.getElementById('picker').open")
    tab.call("Input.insertText", text="0")
    tab.press("Enter")
    tab.wait("document.getElementById('undo').textContent === 'undo: move 1 image to cluster 0'")
    refined_by_click(tab)
    tab.close()
    before, after = run.read_answers(), answers_of(tmp_path / "run-refined")
    assert after.clusters[of_one[0]] == 0 != before.clusters[of_one[0]]
    assert (after.clusters[:] == before.clusters).mean() > 0.5
