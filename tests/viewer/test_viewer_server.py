"""Who may ask the viewer's server, and what it hands out, by real requests."""

import io
import json
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from viewer_runs import HOSTILE

from dcdc.data.cache_folder import cache_folder
from dcdc.errors import InputError
from dcdc.viewer import ViewServer
from dcdc.viewer.thumbnails import clear_thumbnails

PATHS = ("/", "/overview", "/rows", "/thumbnail/0", "/original/0", "/view.js", "/no-such-thing")


def opened(answer) -> Image.Image:
    assert answer.status == 200, answer.content
    return Image.open(io.BytesIO(answer.content))


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_the_token(client, path):
    assert client.ask(path, Cookie="").status == 403
    assert client.ask(path, Cookie=f"{client.server.cookie}=guessed").status == 403
    assert client.ask(path, Cookie=f"{client.server.cookie}=\xe9").status == 403
    assert client.ask(f"{path}?token=guessed", Cookie="").status == 403


def test_the_first_page_gives_a_cookie_that_stays_at_home(client):
    answer = client.ask(f"/?token={client.server.token}", Cookie="")
    assert answer.status == 200
    assert b"<title>" in answer.content
    assert client.server.token.encode() not in answer.content
    given = answer.headers["Set-Cookie"]
    assert given.startswith(f"{client.cookie};")
    assert "HttpOnly" in given
    assert "SameSite=Strict" in given
    assert client.ask("/?token=guessed", Cookie="").headers["Set-Cookie"] is None
    assert client.ask("/overview").status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0:{port}"])
def test_a_name_that_leads_here_is_not_ours(client, host):
    host = host.format(port=client.server.server_port)
    assert client.ask("/overview", Host=host).status in (400, 403)
    assert client.ask(f"/?token={client.server.token}", Host=host).status in (400, 403)


def test_it_listens_on_this_machine_alone(client):
    assert client.server.server_address[0] == "127.0.0.1"
    assert client.ask("/overview", Host=client.server.hosts[1]).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_origin_shows_nothing(client, site):
    """Another port of this machine is the same site: its pages have our cookie sent along."""
    assert client.ask("/thumbnail/0", Sec_Fetch_Site=site).status == 403
    assert client.ask("/thumbnail/0", Sec_Fetch_Site="same-origin").status == 200


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_guards_itself(client, path):
    for cookie in ("", client.cookie):
        headers = client.ask(path, Cookie=cookie, Origin="http://evil.example").headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "/original/../../../../../../etc/passwd",
        "/original/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/original//etc/passwd",
        "/original/0/../../../run/config.json",
        "/thumbnail/..%5c..%5cconfig.json",
        "/original/0%00.jpg",
        "/original/-1",
        "/original/12",
        "/original/999999999",
        "/original/99999999999999999999",
        "/original/1e1",
        "/original/%D9%A1",
        "/../view.css",
        "/templates/view.css",
        "/run/config.json",
        "//etc/passwd",
        "/about?rows=0,12",
        "/about?rows=../config.json",
        "/nearest?row=",
    ],
)
def test_what_is_no_row_of_the_run_is_not_found(client, path):
    assert client.ask(path).status == 404


@pytest.mark.parametrize("query", ["order=up", "cluster=x", "cluster=-2", "cluster=1;2"])
def test_orders_and_clusters_that_are_none(client, query):
    assert client.ask(f"/rows?{query}").status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "HEAD", "SHOUT"])
def test_other_methods_are_refused(client, method):
    answer = client.ask("/overview", method=method)
    assert answer.status == 501
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_body_without_an_end_is_not_read(client):
    for headers in (
        {"Content_Length": "9" * 30},
        {"Content_Length": "-1"},
        {"Content_Length": "x"},
    ):
        assert client.ask("/edits", method="POST", **headers).status == 413
    assert client.ask("/edits", method="POST", Transfer_Encoding="chunked").status == 413


def test_a_port_that_is_taken_is_told(client):
    with pytest.raises(InputError, match="port"):
        ViewServer(client.server.answer, client.server.server_port)


@pytest.mark.parametrize("name", ["trip/0.jpg", "clear.png", "turned.jpg", HOSTILE])
def test_an_original_is_its_file(client, photos, names, name):
    answer = client.ask(f"/original/{names.index(name)}")
    assert answer.status == 200
    assert answer.content == (photos / name).read_bytes()
    assert answer.headers["Content-Type"] == ("image/png" if name == "clear.png" else "image/jpeg")


def test_what_a_browser_does_not_show_is_encoded_again(client, names):
    answer = client.ask(f"/original/{names.index('scan.tiff')}")
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert opened(answer).size == (300, 200)


@pytest.mark.parametrize("kind", ["thumbnail", "original"])
def test_a_drawing_that_runs_scripts_is_never_sent(client, names, kind):
    answer = client.ask(f"/{kind}/{names.index('vector.png')}")
    assert answer.status == 422
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert b"svg" not in answer.content


def test_thumbnails_are_upright_and_large_enough(client, names):
    for name in ("trip/0.jpg", "scan.tiff"):
        assert opened(client.ask(f"/thumbnail/{names.index(name)}")).size == (240, 160)
    turned = opened(client.ask(f"/thumbnail/{names.index('turned.jpg')}"))
    assert turned.size == (160, 240)
    top, bottom = (turned.getpixel((80, y))[0] for y in (20, 220))
    assert top < bottom  # the dark left half has come up


@pytest.fixture
def kept_thumbnails(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "own cache"))
    return lambda: list((cache_folder() / "thumbnails").rglob("*.jpg"))


def test_thumbnails_are_cleared_with_the_cache(client, kept_thumbnails):
    first = client.ask("/thumbnail/3").content
    assert [file.read_bytes() for file in kept_thumbnails()] == [first]
    clear_thumbnails()
    assert kept_thumbnails() == []
    assert client.ask("/thumbnail/3").content == first


def test_thumbnails_are_made_once_and_again_for_another_file(
    client, photos, names, kept_thumbnails
):
    row = names.index("trip/3.jpg")
    first = client.ask(f"/thumbnail/{row}").content
    kept = kept_thumbnails()
    assert [file.read_bytes() for file in kept] == [first]
    other = client.ask(f"/thumbnail/{names.index('trip/4.jpg')}").content
    kept[0].write_bytes(other)
    assert client.ask(f"/thumbnail/{row}").content == other  # from the cache
    kept[0].write_bytes(other[:100])
    assert client.ask(f"/thumbnail/{row}").content == first
    photo = Image.new("RGB", (400, 400), "red")
    photo.save(photos / "trip/3.jpg")
    assert opened(client.ask(f"/thumbnail/{row}")).size == (160, 160)


def test_a_file_that_has_gone_or_is_damaged_costs_its_image_alone(client, photos, names):
    (photos / "trip/0.jpg").unlink()
    (photos / "trip/1.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    for name in ("trip/0.jpg", "trip/1.jpg"):
        for kind in ("thumbnail", "original"):
            assert client.ask(f"/{kind}/{names.index(name)}").status == 422
    assert client.ask(f"/thumbnail/{names.index('trip/2.jpg')}").status == 200


def test_a_link_that_leads_out_of_the_source_is_not_followed(serve, photos, run, tmp_path):
    secret = tmp_path / "secret.jpg"
    Image.new("RGB", (50, 50)).save(secret)
    (photos / "trip/0.jpg").unlink()
    (photos / "trip/0.jpg").symlink_to(secret)
    client = serve(run)
    row = run.read_assignments()["name"].to_pylist().index("trip/0.jpg")
    assert client.ask(f"/original/{row}").status == 422
    assert client.ask(f"/thumbnail/{row}").status == 422


def test_names_reach_the_page_as_json_alone(client, names):
    about = client.ask(f"/about?rows={names.index(HOSTILE)}")
    assert about.headers["Content-Type"] == "application/json"
    (told,) = json.loads(about.content)
    assert told["name"] == HOSTILE.replace("\u202e", "\\u202e")


def test_rows_are_plain_numbers(client, names):
    answer = client.ask("/rows?cluster=1&order=name")
    rows = np.frombuffer(answer.content, "<u4").tolist()
    assert sorted(rows) == [row for row in range(len(names)) if row % 3 == 1]


def test_nothing_is_written_to_the_run_or_its_source(serve, run, photos):
    def state():
        files = [*photos.rglob("*"), *run.path.rglob("*")]
        return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = state()
    client = serve(run)
    for path in (*PATHS, "/nearest?row=0", "/groups?kind=copies", "/groups?kind=near", "/map"):
        client.ask(path)
    assert state() == before


def test_who_breaks_off_is_no_fault(client, capfd):
    for sent in (b"GET /overv", b"GET /overview HTTP/1.1\r\nHost: x\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", client.server.server_port)) as connection:
            connection.sendall(sent)
            now = struct.pack("ii", 1, 0)  # reset, not closed
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
    assert client.ask("/overview").status == 200
    assert capfd.readouterr().err == ""


def test_the_page_waits_for_no_torch(run):
    """Which takes seconds and 200 MB, and which only splitting a cluster needs."""
    look = f"""
import sys
from pathlib import Path
from dcdc.run_folder import RunFolder
from dcdc.viewer import Answers, ViewServer, open_run
from dcdc.viewer.server import Request
viewed = open_run(RunFolder.open(Path({str(run.path)!r})))
viewed.survey.start()
assert viewed.survey.done.wait(60)
with ViewServer(Answers(viewed)) as server:
    for path in ("/", "/overview", "/rows", "/thumbnail/0"):
        server.answer(Request("GET", path, {{}}))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", look], check=True)
