"""What edits make of a run's answers, and the file that holds them."""

import json

import numpy as np
import pytest

from dcdc.engine.edits import OUTSIDE, Edits, RunAnswers, corrected, joined, read_edits, write_edits
from dcdc.errors import InputError

ANSWERS = RunAnswers([f"{row}.jpg" for row in range(6)], np.array([0, 0, 1, 1, 2, 2]), 3)


def images(*rows):
    return [[row, f"{row}.jpg"] for row in rows]


def made(*edits):
    found = Edits(ANSWERS.digest)
    for edit in edits:
        found = found.with_edit(edit, ANSWERS)
    return found


MOVED = {"kind": "move", "images": images(0), "to": 2}
MERGED = {"kind": "merge", "clusters": [2, 1], "into": 1}
OUT = {"kind": "outside", "images": images(3)}


def test_edits_are_made_in_their_order():
    found = corrected(made(MOVED, MERGED, OUT), ANSWERS)
    assert found.clusters.tolist() == [1, 0, 1, OUTSIDE, 1, 1]
    assert np.flatnonzero(found.placed).tolist() == [0, 3]
    found = corrected(made(MERGED, MOVED), ANSWERS)
    assert found.clusters.tolist() == [2, 0, 1, 1, 1, 1]
    assert ANSWERS.clusters.tolist() == [0, 0, 1, 1, 2, 2]


def test_an_image_can_found_a_cluster():
    edits = made({"kind": "move", "images": images(1, 2), "to": 3})
    found = corrected(edits, ANSWERS)
    assert found.n_clusters == 4
    assert found.clusters.tolist() == [0, 3, 3, 1, 2, 2]
    edits.with_edit({"kind": "name", "cluster": 3, "name": "owls"}, ANSWERS)


def test_names_and_pairs():
    edits = made(
        {"kind": "name", "cluster": 1, "name": "  big \n cats "},
        {"kind": "together", "images": images(0, 5)},
        {"kind": "apart", "images": images(2, 3)},
        {"kind": "name", "cluster": 0, "name": ""},
    )
    found = corrected(edits, ANSWERS)
    assert found.names == {1: "big cats", 0: ""}
    assert (found.together, found.apart) == ([[0, 5]], [[2, 3]])
    assert found.clusters.tolist() == ANSWERS.clusters.tolist()


def test_the_last_one_is_taken_back():
    edits = made(MOVED, MERGED)
    assert edits.without_last() == made(MOVED)
    assert edits.without_last().without_last() == Edits(ANSWERS.digest)
    versions = {Edits(ANSWERS.digest).version, made(MOVED).version, made(MERGED).version}
    assert len(versions) == 3


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "move", "images": images(0), "to": 4},
        {"kind": "move", "images": [[6, "6.jpg"]], "to": 0},
        {"kind": "outside", "images": [[0, "1.jpg"]]},
        {"kind": "merge", "clusters": [0], "into": 3},
        {"kind": "merge", "clusters": [7], "into": 0},
        {"kind": "name", "cluster": 3, "name": "x"},
        {"kind": "name", "cluster": 0, "name": "x" * 101},
        {"kind": "name", "cluster": 0, "name": "\x1b[31m"},
        {"kind": "together", "images": images(1)},
    ],
    ids=lambda edit: f"{edit['kind']}",
)
def test_what_does_not_fit_is_refused(edit):
    with pytest.raises(InputError):
        made(edit)


def test_the_file_is_read_back_and_a_person_can_read_it(tmp_path):
    path = tmp_path / "edits.json"
    edits = made(MOVED, MERGED, {"kind": "name", "cluster": 1, "name": "Hühner"})
    write_edits(path, edits)
    assert read_edits(path, ANSWERS) == edits
    lines = path.read_text().splitlines()
    assert json.loads(lines[4].rstrip(",")) == MOVED
    assert "Hühner" in lines[6]
    content = json.loads(path.read_text())
    content["edits"][0]["to"] = 1
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="was altered"):
        read_edits(path, ANSWERS)
    del content["checksum"]
    path.write_text(json.dumps(content))
    assert corrected(read_edits(path, ANSWERS), ANSWERS).clusters[0] == 1


def test_edits_of_other_answers_are_refused(tmp_path):
    write_edits(tmp_path / "edits.json", made(MOVED))
    others = RunAnswers(ANSWERS.names, ANSWERS.clusters[::-1], 3)
    with pytest.raises(InputError, match=r"edits\.json does not fit the run: .* other answers"):
        read_edits(tmp_path / "edits.json", others)


SPLIT = {"kind": "split", "cluster": 1, "parts": [images(3), images(2)]}


def test_a_split_makes_clusters_that_nobody_placed():
    found = corrected(made(SPLIT, {"kind": "name", "cluster": 4, "name": "owls"}), ANSWERS)
    assert found.clusters.tolist() == [0, 0, 4, 3, 2, 2]
    assert (found.n_clusters, found.names) == (5, {4: "owls"})
    assert not found.placed.any()
    assert made(SPLIT).without_last() == made()


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({**SPLIT, "cluster": 3}, "there is no cluster 3"),
        ({**SPLIT, "parts": []}, "needs a part"),
        ({**SPLIT, "parts": [[]]}, "holds no image"),
        ({**SPLIT, "parts": [images(2), images(2)]}, "image 2 is not in cluster 1, or in two"),
        ({**SPLIT, "parts": [images(0)]}, "image 0 is not in cluster 1"),
        ({**SPLIT, "parts": [[[2, "x"]]]}, "is not called 'x'"),
    ],
)
def test_splits_that_do_not_fit(edit, told):
    with pytest.raises(InputError, match=told):
        made(edit)


def test_edits_of_another_person_come_after_ones_own():
    fresh = {"kind": "move", "images": images(1), "to": 3}
    named = {"kind": "name", "cluster": 3, "name": "owls", "before": ""}
    theirs = made(MOVED, fresh, {**named, "name": "bats"}, {**MERGED, "clusters": [3], "into": 0})
    own = made(MOVED, SPLIT, named)  # which has new clusters 3 and 4
    found = joined(own, theirs, ANSWERS, {3: "owls"})
    assert found.made[:3] == own.made
    assert found.made[3:] == (
        {**fresh, "to": 5},
        {**named, "cluster": 5, "name": "bats"},
        {**MERGED, "clusters": [5], "into": 0},
    )
    assert corrected(found, ANSWERS).n_clusters == 6
    assert joined(found, own, ANSWERS, {}) == found  # nothing new


def test_a_name_that_is_taken_back_leaves_the_one_before():
    theirs = made(
        {"kind": "name", "cluster": 1, "name": "cats"},
        {"kind": "name", "cluster": 1, "name": "dogs"},
    )
    found = joined(made(), theirs, ANSWERS, {1: "fish"})
    assert [edit["before"] for edit in found.made] == ["fish", "cats"]


def test_edits_of_other_answers_are_not_joined():
    with pytest.raises(InputError, match="other answers"):
        joined(made(), Edits("0" * 16, (MOVED,)), ANSWERS, {})
    moved = made({"kind": "move", "images": images(3), "to": 0})
    with pytest.raises(InputError, match="not in cluster 1"):
        joined(moved, made(SPLIT), ANSWERS, {})
