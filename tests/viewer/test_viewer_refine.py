"""The button "refine": a process of its own that the page follows."""

import json
import time

import pytest

from corrected_runs import answers_of, correct
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
    tab.click_on("#refine")
    says = "document.getElementById('refine-says').textContent"
    end = time.monotonic() + 120
    while not tab.run(says).startswith("Refined: "):
        assert time.monotonic() < end, tab.run(says)
        time.sleep(0.1)
    assert str(tmp_path / "mixed-image-run-refined") in tab.run(says)
    assert not tab.run("document.getElementById('refine').disabled")
    assert not tab.complaints
    tab.close()
