"""Answers that keep to what people said, against every way to give clusters."""

from itertools import product

import numpy as np
import pytest

from dcdc.engine.assignment import UNSAID, Assigned
from dcdc.engine.edits import OUTSIDE
from dcdc.engine.settled import said, settled, spoken_of
from dcdc.engine.taught import Taught

N_CLUSTERS = 3


def taught(n_images=6, labels=(), outside=(), together=(), apart=()):
    clusters, placed = np.zeros(n_images, np.int32), np.zeros(n_images, bool)
    for row, cluster in (*labels, *((row, OUTSIDE) for row in outside)):
        clusters[row], placed[row] = cluster, True
    pairs = [np.array(each, np.int64).reshape(-1, 2) for each in (together, apart)]
    return Taught(clusters, placed, ("",) * N_CLUSTERS, *pairs)


def shares(n_images=6, seed=0):
    drawn = np.random.default_rng(seed).gamma(0.5, size=(n_images, N_CLUSTERS)) + 1e-3
    return (drawn / drawn.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("seed", range(6))
def test_together_is_the_likeliest_of_all_ways_that_keep_to_it(seed):
    found = taught(labels=[(0, 2)], together=[(0, 1), (2, 3), (3, 4)])
    probabilities = shares(seed=seed)
    ours = said(probabilities, found)
    assert ours[5] == UNSAID
    rows = spoken_of(found)
    assert rows.tolist() == [0, 1, 2, 3, 4]

    def likelihood(ways):
        return sum(np.log(probabilities[row, way]) for row, way in zip(rows, ways, strict=True))

    allowed = [
        ways
        for ways in product(range(N_CLUSTERS), repeat=5)
        if ways[0] == ways[1] == 2 and ways[2] == ways[3] == ways[4]
    ]
    assert tuple(ours[rows].tolist()) == max(allowed, key=likelihood)


@pytest.mark.parametrize("seed", range(6))
def test_of_two_apart_the_surer_one_has_its_choice(seed):
    probabilities = shares(2, seed)
    ours = said(probabilities, taught(2, apart=[(0, 1)]))
    two = np.sort(probabilities, axis=1)[:, -2:]
    lead = np.log(two[:, 1]) - np.log(two[:, 0])
    sure, other = (0, 1) if lead[0] > lead[1] else (1, 0)
    first = probabilities[sure].argmax()
    left = [cluster for cluster in range(N_CLUSTERS) if cluster != first]
    assert ours[sure] == first
    assert ours[other] == max(left, key=probabilities[other].__getitem__)


def test_no_two_of_a_group_apart_are_in_one_cluster():
    """Three images for three clusters, one of which a person has given away."""
    for seed in range(20):
        found = taught(3, labels=[(1, 0)], apart=[(0, 1), (0, 2), (1, 2)])
        ours = said(shares(3, seed), found)
        assert ours[1] == 0
        assert sorted(ours.tolist()) == [0, 1, 2]


def test_where_none_is_left_the_best_is_taken():
    found = taught(4, apart=[(one, other) for other in range(4) for one in range(other)])
    assert set(said(shares(4), found).tolist()) == {0, 1, 2}


def test_images_of_none_are_in_no_pair():
    found = taught(outside=[0, 3], together=[(0, 1)], apart=[(3, 4)])
    ours = said(shares(), found)
    assert ours.tolist() == [OUTSIDE, UNSAID, UNSAID, OUTSIDE, UNSAID, UNSAID]
    assert settled(np.empty((0, N_CLUSTERS)), spoken_of(found), found).tolist() == []


def test_answers_have_them():
    probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.2, 0.3, 0.5]], np.float32)
    plain = Assigned(probabilities)
    assert plain.assignments.tolist() == [0, 0, 2]
    ours = Assigned(probabilities, said=np.array([UNSAID, 2, OUTSIDE]))
    assert ours.assignments.tolist() == [0, 2, OUTSIDE]
    assert ours.confidence == pytest.approx([0.6, 0.1, 0.5])
    second, share = ours.runner_up()
    assert second.tolist() == [1, 0, 1]
    assert share == pytest.approx([0.3, 0.5, 0.3])
    nobody = Assigned(probabilities, said=np.full(3, UNSAID))
    for each in ("assignments", "confidence"):
        assert np.array_equal(getattr(nobody, each), getattr(plain, each))
