"""Corrections that somebody sends: from a file of the page into the run folder, checked."""

import json

import pytest

from dcdc.run_folder import RunFolder


@pytest.fixture
def given(finished, tmp_path):
    """Writes edits of the finished run; their file."""
    answers = RunFolder.open(finished).read_answers()

    def write(*edits, **changes) -> str:
        content = {"format": 1, "answers": answers.digest, "edits": list(edits)} | changes
        (tmp_path / "sent.json").write_text(json.dumps(content))
        return "sent.json"

    write.images = lambda *rows: [[row, answers.names[row]] for row in rows]
    return write


def test_they_are_added_once_and_tell_on_what_is_taken_away(dcdc, finished, given, tmp_path):
    moved = {"kind": "move", "to": 3, "images": given.images(4)}
    named = {"kind": "name", "cluster": 3, "name": "owls"}
    sent = given(moved, named, {"kind": "name", "cluster": 0, "name": "stripes"})
    code, out, err = dcdc("report", finished, "--edits", sent, "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("3 corrections taken from sent.json\n")
    page = (finished / "report.html").read_text()
    assert "3 corrections were made there before" in page
    assert "stripes" in page
    code, out, _ = dcdc("report", finished, "--edits", sent, "--quiet")
    assert out.startswith("0 corrections taken from sent.json, all there already\n")
    assert dcdc("export", finished, "--table", "t.jsonl")[0] == 0
    row = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[4])
    assert (row["cluster"], row["cluster_name"], row["corrected"]) == (3, "owls", True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"answers": "0" * 16}, "sent.json does not fit the run: the edits correct other answers"),
        ({"format": 2}, "sent.json: format is 2, it should be 1"),
        ({"edits": [{"kind": "dance"}]}, 'edits[0].kind is "dance"'),
        ({"edits": [{"kind": "move", "to": 1, "images": [[0, "x"]]}]}, "is not called 'x'"),
        ({"edits": [{"kind": "merge", "clusters": [9], "into": 0}]}, "there is no cluster 9"),
        ({"edits": [{"kind": "name", "cluster": 0, "name": "a\u0007"}]}, "control characters"),
    ],
)
@pytest.mark.parametrize("verb", [("report",), ("view", "--no-browser")])
def test_a_file_that_does_not_fit_is_one_line_and_changes_nothing(
    dcdc, finished, given, verb, changes, told
):
    code, out, err = dcdc(verb[0], finished, *verb[1:], "--edits", given(**changes))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not (finished / "edits.json").exists()
