"""Corrections on the page: who may send them, and that what was acknowledged is kept."""

import http.client
import json
import os
import signal
import threading

import pytest
from viewer_runs import Client

from dcdc.engine.edits import OUTSIDE, Edits
from dcdc.errors import InputError
from dcdc.viewer import Answers, ViewServer, open_run


def post(client, edit, version=None, **headers):
    if version is None:
        version = json.loads(client.ask("/overview").content)["version"]
    sent = {"Content_Type": "application/json", "Origin": f"http://{client.server.hosts[0]}"}
    body = json.dumps({"version": version, "edit": edit}).encode()
    return client.ask("/edits", method="POST", body=body, **(sent | headers))


MOVE = {"kind": "move", "rows": [0, 5], "to": 1}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Cookie": ""},
        {"Host": "evil.example"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_edits_of_strangers_are_refused(client, run, headers):
    assert post(client, MOVE, "", **headers).status == 403
    assert not run.edits_file.exists()
    body = json.dumps({"version": "", "edit": MOVE}).encode()
    token = f"/edits?token={client.server.token}"
    assert client.ask(token, method="POST", body=body, Cookie="").status == 403


def test_a_form_of_a_page_is_no_edit(client, run):
    assert post(client, MOVE, "", Content_Type="text/plain").status == 415
    assert not run.edits_file.exists()


def test_edits_are_written_shown_and_taken_back(client, serve, run, names):
    answer = json.loads(post(client, MOVE).content)
    assert (answer["n_edits"], answer["last_edit"]) == (1, "move 2 images to cluster 1")
    sizes = {each["number"]: each["size"] for each in answer["clusters"]}
    assert sizes == {0: 3, 1: 6, 2: 3}
    kept = json.loads(run.edits_file.read_text())
    assert kept["edits"] == [{"kind": "move", "to": 1, "images": [[0, names[0]], [5, names[5]]]}]
    run.write_names({1: "fish", 2: "cats"})
    post(client, {"kind": "name", "cluster": 1, "name": "birds"})
    assert run.read_names() == {1: "birds", 2: "cats"}  # as reports and predictions read them
    post(client, {"kind": "outside", "rows": [2]})
    about = json.loads(client.ask("/about?rows=0,2,5").content)
    assert [each["cluster"] for each in about] == [1, OUTSIDE, 1]
    assert [each.get("was") for each in about] == [0, 2, 2]
    again = json.loads(serve(run).ask("/overview").content)  # another process would read the same
    assert again["n_edits"] == 3
    assert next(each["name"] for each in again["clusters"] if each["number"] == 1) == "birds"
    assert again["n_outside"] == 1
    for n_left in (2, 1, 0):
        assert json.loads(post(client, None).content)["n_edits"] == n_left
    assert run.read_names() == {1: "fish", 2: "cats"}
    about = json.loads(client.ask("/about?rows=0,2,5").content)
    assert [each["cluster"] for each in about] == [0, 2, 2]


def test_a_new_cluster_has_a_name_too(client, run):
    post(client, {"kind": "move", "rows": [4], "to": 3})
    answer = json.loads(post(client, {"kind": "name", "cluster": 3, "name": "owls"}).content)
    found = {each["number"]: (each["name"], each["size"]) for each in answer["clusters"]}
    assert found[3] == ("owls", 1)
    assert run.read_names() == {}  # which is of the model's own clusters


def test_a_split_is_one_edit(client):
    split = {"kind": "split", "cluster": 0, "parts": [[0, 3], [6]]}
    answer = json.loads(post(client, split).content)
    assert answer["last_edit"] == "split of cluster 0 into 3"
    sizes = {each["number"]: each["size"] for each in answer["clusters"]}
    assert sizes == {0: 1, 1: 4, 2: 4, 3: 2, 4: 1}
    assert json.loads(post(client, None).content)["n_clusters"] == 3
    assert post(client, {**split, "parts": [[1]]}).status == 400


def test_an_edit_may_be_of_duplicates_too(client, names):
    one, other = names.index("trip/2.jpg"), names.index("trip/copy of 2.jpg")
    for row in (one, other):
        post(client, {"kind": "move", "rows": [row], "to": 0})
    answer = post(client, {"kind": "move", "rows": [one], "to": 2, "duplicates": True})
    assert json.loads(answer.content)["last_edit"] == "move 2 images to cluster 2"
    about = json.loads(client.ask(f"/about?rows={one},{other}").content)
    assert [(each["cluster"], each["alike"]) for each in about] == [(2, 2), (2, 2)]
    post(client, {"kind": "move", "rows": [one], "to": 1})
    assert json.loads(client.ask(f"/about?rows={other}").content)[0]["cluster"] == 2


def test_edits_of_a_file_are_added_or_refused_as_a_whole(run, names):
    corrections = open_run(run).corrections
    corrections.make({"kind": "name", "cluster": 0, "name": "cats"}, "")
    digest = corrections.edits.answers
    named = {"kind": "name", "cluster": 0, "name": "dogs"}
    moved = {"kind": "move", "to": 3, "images": [[4, names[4]]]}
    assert corrections.take(Edits(digest, (named, moved))) == 2
    assert run.read_names() == {0: "dogs"}
    assert len(open_run(run).corrections.edits.made) == 3
    with pytest.raises(InputError, match="no cluster 9"):
        corrections.take(Edits(digest, ({**named, "name": "cows"}, {**moved, "to": 9})))
    assert len(open_run(run).corrections.edits.made) == 3
    for _ in range(2):
        corrections.undo(corrections.edits.version)
    assert run.read_names() == {0: "cats"}


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "move", "rows": [12], "to": 1},
        {"kind": "move", "rows": [12], "to": 1, "duplicates": True},
        {"kind": "split", "cluster": 0, "parts": [[0], "1"]},
        {"kind": "split", "cluster": 0, "parts": 1},
        {"kind": "move", "rows": ["0"], "to": 1},
        {"kind": "move", "rows": [0], "to": 9},
        {"kind": "move", "images": [[0, "../../etc"]], "to": 1},
        {"kind": "dance"},
        {},
        [],
        "move",
    ],
    ids=str,
)
def test_edits_that_are_none(client, run, edit):
    assert post(client, edit, "").status == 400
    assert not run.edits_file.exists()


def test_no_json_is_no_edit(client):
    sent = {"Content_Type": "application/json", "Origin": f"http://{client.server.hosts[0]}"}
    for body in (b"", b"{", b"[]", b'{"version": 1, "edit": null}', b"[" * 100_000):
        assert client.ask("/edits", method="POST", body=body, **sent).status == 400


def test_two_pages_do_not_undo_each_other(client, serve, run):
    other = serve(run)
    version = json.loads(other.ask("/overview").content)["version"]
    assert post(client, MOVE).status == 200
    answer = post(other, {"kind": "outside", "rows": [1]}, version)
    assert answer.status == 409
    assert json.loads(other.ask("/overview").content)["n_edits"] == 1
    assert post(other, {"kind": "outside", "rows": [1]}).status == 200
    assert len(json.loads(run.edits_file.read_text())["edits"]) == 2


def test_while_another_process_writes_nothing_is_saved(client, run, forked):
    held, may_go = os.pipe(), os.pipe()

    def hold() -> None:
        with run.writing():
            os.write(held[1], b"x")
            os.read(may_go[0], 1)

    process = forked(hold)
    os.read(held[0], 1)
    answer = post(client, MOVE, "")
    os.write(may_go[1], b"x")
    process.join()
    assert answer.status == 400
    assert b"another process is working" in answer.content
    assert not run.edits_file.exists()
    assert post(client, MOVE).status == 200


def test_looking_holds_no_lock(client, run):
    client.ask("/overview")
    with run.writing():
        pass


def test_no_acknowledged_edit_is_lost_by_a_kill(run, forked):
    """The server is killed while edits come in: what it answered is in the file, whole."""
    told = os.pipe()
    viewed = open_run(run)

    def serve_alone() -> None:
        server = ViewServer(Answers(viewed))
        os.write(told[1], f"{server.server_port} {server.token}\n".encode())
        server.serve_forever()

    process = forked(serve_alone)
    port, token = os.read(told[0], 1000).decode().split()
    client = Client.__new__(Client)
    client.server = type("", (), {})()
    client.server.server_port, client.server.hosts = int(port), (f"127.0.0.1:{port}",)
    client.cookie = f"dcdc-view-{port}={token}"
    timer = threading.Timer(0.7, os.kill, (process.pid, signal.SIGKILL))
    timer.start()
    acknowledged, version = 0, ""
    try:
        while True:
            answer = post(client, {"kind": "move", "rows": [acknowledged % 12], "to": 1}, version)
            assert answer.status == 200
            acknowledged, version = acknowledged + 1, json.loads(answer.content)["version"]
    except (OSError, http.client.HTTPException):
        pass
    timer.join()
    process.join()
    assert acknowledged
    found = open_run(run).corrections.edits.made
    assert acknowledged <= len(found) <= acknowledged + 1
    rows = [edit["images"][0][0] for edit in found]
    assert rows == [number % 12 for number in range(len(found))]
