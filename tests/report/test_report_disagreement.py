"""Which images two methods answer otherwise, against loops over every image."""

import numpy as np
import pytest

from dcdc.data import VectorSet, from_arrays
from dcdc.report.compared_runs import ComparedRun
from dcdc.report.disagreement import (
    MOST_SHOWN,
    agreement_of,
    classes_of,
    picker_data,
    shown_images,
)

ANSWERS = ([2, 2, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 2, 1, 0, 2])
TARGETS = list("aabbccc")


@pytest.fixture
def runs(make_facts):
    return [
        ComparedRun(f"run {at}", make_facts(answers, n_clusters=3, targets=TARGETS), None)
        for at, answers in enumerate(ANSWERS)
    ]


@pytest.fixture
def blind(make_facts):
    return [
        ComparedRun(f"run {at}", make_facts(answers, n_clusters=3), None)
        for at, answers in enumerate(ANSWERS)
    ]


def test_a_cluster_stands_for_the_class_that_it_is_matched_to(runs):
    classes = classes_of(runs)
    assert classes == ["a", "b", "c"]
    found = agreement_of(runs, classes)
    assert found.stands_for[:2] == [[2, 1, 0], [0, 2, -1]]
    for a, ours in enumerate(ANSWERS):
        for b, theirs in enumerate(ANSWERS):
            said = [
                (found.stands_for[a][one], found.stands_for[b][other], classes.index(truth))
                for one, other, truth in zip(ours, theirs, TARGETS, strict=True)
            ]
            assert found.same[a, b] == sum(one == other != -1 for one, other, _ in said)
            assert found.only[a, b] == sum(one == truth != other for one, other, truth in said)


def test_without_classes_the_clusters_are_matched_to_each_other(blind):
    assert classes_of(blind) is None
    found = agreement_of(blind, None)
    assert found.only is None
    assert found.matches["0,1"] == [1, -1, 0]
    assert found.matches["1,0"] == [2, 0, -1]
    for a, ours in enumerate(ANSWERS):
        for b, theirs in enumerate(ANSWERS):
            if a == b:
                assert found.same[a, b] == 7
                continue
            match = found.matches[f"{a},{b}"]
            pairs = zip(ours, theirs, strict=True)
            assert found.same[a, b] == sum(match[one] == other for one, other in pairs)


def test_classes_that_are_numbers_have_their_order(make_facts):
    facts = make_facts([0, 1, 1], n_clusters=2, targets=["10", "9", "9"])
    assert classes_of([ComparedRun("one", facts, None)]) == ["9", "10"]


def test_the_script_is_told_of_the_images_it_can_show(runs, flat_images):
    shown = shown_images(flat_images(runs[0].facts))
    classes = classes_of(runs)
    data = picker_data(runs, classes, agreement_of(runs, classes), shown)
    assert shown.rows == tuple(range(7))
    assert data["clusters"] == [list(answers) for answers in ANSWERS]
    assert [classes[number] for number in data["shown"]["class"]] == TARGETS
    assert len(data["shown"]["name"]) == 7
    assert data["coarse"]
    counts = np.array(data["tables"][0]["counts"])
    assert counts.sum() == 7
    assert np.trace(counts) == 7  # of the first run every image is right


def test_of_many_images_an_even_sample_is_shown():
    images = np.random.default_rng(0).integers(0, 256, (3 * MOST_SHOWN, 8, 8)).astype(np.uint8)
    shown = shown_images(from_arrays(images))
    assert len(shown.rows) == MOST_SHOWN
    assert (shown.rows[0], shown.rows[-1]) == (0, 3 * MOST_SHOWN - 1)
    assert set(np.diff(shown.rows)) <= {2, 3, 4}
    assert shown.sheet is not None


def test_vectors_without_files_are_listed_by_name_and_it_is_said_why():
    vectors = VectorSet(np.zeros((4, 2), np.float32), list("abcd"))
    shown = shown_images(vectors)
    assert shown.sheet is None
    assert "feature vectors" in shown.why_none
