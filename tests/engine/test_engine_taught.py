"""What people taught by their edits: labels, pairs, and clusters as the new run numbers them."""

import numpy as np
import pytest

from dcdc.engine.edits import OUTSIDE, Edits, RunAnswers
from dcdc.engine.taught import read_taught, taught_by, write_taught
from dcdc.errors import InputError
from dcdc.stored.reading import DamagedFileError

ANSWERS = RunAnswers([f"{row}.jpg" for row in range(8)], np.array([0, 0, 1, 1, 2, 2, 3, 3]), 4)


def images(*rows):
    return [[row, f"{row}.jpg"] for row in rows]


def move(to, *rows):
    return {"kind": "move", "to": to, "images": images(*rows)}


def merge(into, *clusters):
    return {"kind": "merge", "clusters": list(clusters), "into": into}


def pair(kind, *rows):
    return {"kind": kind, "images": images(*rows)}


def name(cluster, called):
    return {"kind": "name", "cluster": cluster, "name": called}


def taught(*edits, answers=ANSWERS, **more):
    found = Edits(answers.digest)
    for edit in edits:
        found = found.with_edit(edit, answers)
    return taught_by(found, answers, **more)


def test_moved_images_are_labels():
    found = taught(move(2, 0, 3))
    assert found.clusters.tolist() == [2, 0, 1, 2, 2, 2, 3, 3]
    assert found.labelled.tolist() == [0, 3]
    assert found.n_clusters == 4
    assert found.counts == {"move": 1}


def test_merged_and_emptied_clusters_are_gone_and_a_new_one_is_there():
    found = taught(merge(3, 1), move(0, 4, 5), move(4, 6))
    assert found.clusters.tolist() == [0, 0, 1, 1, 0, 0, 2, 1]
    assert found.n_clusters == 3


def test_names_go_with_their_clusters():
    found = taught(merge(3, 0), name(2, "owls"), names={0: "cats", 1: "dogs", 2: "birds"})
    assert found.names == ("dogs", "owls", "cats")
    assert taught(merge(3, 0), names={0: "cats", 3: "lions"}).names == ("", "", "lions")
    assert taught(merge(3, 0, 1), name(3, ""), names={1: "dogs", 3: "lions"}).names == ("", "dogs")


def test_images_that_belong_to_none():
    found = taught({"kind": "outside", "images": images(1, 4)}, move(1, 4))
    assert found.outside.tolist() == [1]
    assert found.labelled.tolist() == [4]
    assert found.clusters.tolist() == [0, OUTSIDE, 1, 1, 1, 2, 3, 3]


def test_groups_are_pairs():
    found = taught(pair("together", 4, 0, 6), pair("apart", 1, 2, 3))
    assert found.together.tolist() == [[0, 4], [0, 6]]
    assert found.apart.tolist() == [[1, 2], [1, 3], [2, 3]]


def test_what_was_said_before_holds_where_nothing_else_was_said_since():
    first = taught(move(2, 0), pair("together", 1, 2), pair("apart", 4, 6), move(3, 5))
    answers = RunAnswers(ANSWERS.names, first.clusters, first.n_clusters)
    second = taught(merge(0, 2), pair("apart", 2, 7), move(3, 5), answers=answers, earlier=first)
    assert second.labelled.tolist() == [0, 5]
    assert second.clusters[0] == 0
    assert second.together.tolist() == []
    assert second.apart.tolist() == [[2, 7], [4, 6]]
    assert second.counts == {"merge": 1, "apart": 1, "move": 1}


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ((), "no edits to learn from (none)"),
        ((name(0, "cats"),), "no edits to learn from (names alone"),
        ((merge(0, 1, 2, 3),), "leave 1 clusters"),
        ((pair("apart", 0, 1, 2, 3, 4),), "5 images belong apart by the edits, of 4 clusters"),
        (
            (pair("together", 0, 2), move(1, 0), move(3, 2)),
            "images 0 ('0.jpg') and 2 ('2.jpg') belong together, and are in two clusters",
        ),
        ((pair("together", 0, 2, 4), pair("apart", 0, 4)), "belong together, and apart"),
        (
            (pair("apart", 0, 2), move(1, 0, 2)),
            "belong apart, and were put into one cluster by the edits",
        ),
    ],
    ids=["none", "names", "one cluster", "too many apart", "two labels", "both", "one label"],
)
def test_what_cannot_be_learnt_is_refused(edits, told):
    with pytest.raises(InputError) as refused:
        taught(*edits)
    assert told in str(refused.value)


def test_the_file_holds_all_of_it(tmp_path):
    found = taught(
        move(4, 0, 1),
        {"kind": "outside", "images": images(7)},
        pair("apart", 2, 4),
        name(4, "Hühner"),
        source="/runs/photos",
        doubt=0.25,
    )
    write_taught(tmp_path / "taught.npz", found)
    again = read_taught(tmp_path / "taught.npz")
    assert again.clusters.tolist() == found.clusters.tolist()
    assert again.placed.tolist() == found.placed.tolist()
    assert (again.together.shape, again.apart.tolist()) == ((0, 2), [[2, 4]])
    for each in ("names", "source", "answers", "counts", "doubt"):
        assert getattr(again, each) == getattr(found, each), each


@pytest.mark.parametrize(("array", "value"), [("clusters", 4), ("clusters", -2), ("apart", 8)])
def test_a_file_with_what_cannot_be_is_refused(tmp_path, array, value):
    write_taught(tmp_path / "taught.npz", taught(move(1, 0), pair("apart", 2, 4)))
    with np.load(tmp_path / "taught.npz") as content:
        arrays = dict(content)
    arrays[array].flat[0] = value
    np.savez(tmp_path / "taught.npz", **arrays)
    with pytest.raises(DamagedFileError, match=array):
        read_taught(tmp_path / "taught.npz")
