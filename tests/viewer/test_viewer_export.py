"""What the page leaves for other programs: of the corrected answers, and never among the images."""

import json

import pytest
from test_viewer_edits import post

from dcdc.viewer.exporting import Exports

NOTHING = {"folders": "", "table": False, "xmp": False, "lightroom": False, "fiftyone": False}


def send(client, wish, **headers):
    sent = {"Content_Type": "application/json", "Origin": f"http://{client.server.hosts[0]}"}
    return client.ask("/export", method="POST", body=json.dumps(wish).encode(), **(sent | headers))


def test_everything_into_one_folder(client, tmp_path, names):
    post(client, {"kind": "name", "cluster": 0, "name": "cats"})
    post(client, {"kind": "move", "rows": [1], "to": 0})
    where = tmp_path / "out"
    wish = {"where": str(where), "folders": "copy", "table": True, "xmp": True}
    wish |= {"lightroom": False, "fiftyone": True}
    assert send(client, wish).status == 200
    while (told := json.loads(client.ask("/export").content))["is_at_work"]:
        pass
    assert told["error"] is None
    assert [line.partition(":")[0] for line in told["says"]] == [
        "12 rows",
        "12 images for FiftyOne",
        "12 sidecars written",
        "12 files copied",
    ]
    assert sorted(file.name for file in where.iterdir()) == [
        "clusters",
        "fiftyone.json",
        "table.csv",
        "xmp",
    ]
    assert (where / "clusters/cats/clear.png").exists()  # which was moved there
    assert names.index("clear.png") == 1
    refused = send(client, wish)
    assert refused.status == 400
    assert b"table.csv exists" in refused.content


def test_nothing_is_written_among_the_images(client, photos):
    before = sorted(photos.rglob("*"))
    for where in (photos, photos / "trip" / "out", f"{photos}/../photos/out"):
        refused = send(client, {**NOTHING, "where": str(where), "xmp": True, "table": True})
        assert refused.status == 400
        assert b"where nothing is written" in refused.content
    assert sorted(photos.rglob("*")) == before


@pytest.mark.parametrize(
    "wish",
    [
        {},
        [],
        {**NOTHING, "where": "", "table": True},
        {**NOTHING, "where": "a\0b", "table": True},
        {**NOTHING, "where": "out"},
        {**NOTHING, "where": 7, "table": True},
        {**NOTHING, "where": "out", "folders": "move"},
        {**NOTHING, "where": "out", "table": "yes"},
    ],
    ids=str,
)
def test_wishes_that_are_none(client, wish, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert send(client, wish).status == 400
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Cookie": ""}, {"Host": "evil.example"}],
    ids=str,
)
def test_strangers_export_nothing(client, tmp_path, headers):
    wish = {**NOTHING, "where": str(tmp_path / "out"), "table": True}
    assert send(client, wish, **headers).status == 403
    assert send(client, wish, Content_Type="text/plain").status == 415
    assert not (tmp_path / "out").exists()


def test_what_goes_wrong_on_the_way_is_told(run, photos, tmp_path):
    (photos / "trip/0.jpg").unlink()
    exports = Exports(run)
    exports.start({**NOTHING, "where": str(tmp_path / "out"), "folders": "link"})
    exports.wait()
    assert "trip/0.jpg is no longer in" in exports.told()["error"]
    exports.start({**NOTHING, "where": str(tmp_path / "other"), "table": True})  # free again
    exports.wait()
    assert exports.told()["says"] == [f"12 rows: {tmp_path}/other/table.csv"]
