import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcdc.metrics import (
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    normalized_mutual_info,
    overall_purity,
    score,
)
from dcdc.metrics.scores import is_highest

labellings = st.integers(1, 24).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def by_brute_force(targets, assignments):
    """The best over all one-to-one mappings, dummies filling the shorter side."""
    classes, clusters = sorted(set(targets)), sorted(set(assignments))
    classes += [None] * max(0, len(clusters) - len(classes))
    return max(
        sum(dict(zip(clusters, order, strict=False))[a] == t for t, a in pairs)
        for order in permutations(classes, len(clusters))
        for pairs in [list(zip(targets, assignments, strict=True))]
    ) / len(targets)


@settings(max_examples=150, deadline=None)
@given(labellings)
def test_agrees_with_every_permutation_tried(labelling):
    targets, assignments = labelling
    truth = by_brute_force(targets, assignments)
    assert cluster_accuracy(targets, assignments) == pytest.approx(truth, abs=1e-12)
    assert cluster_accuracy(assignments, targets) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(3, 6), (6, 3), (5, 5), (1, 4), (4, 1)])
def test_any_number_of_clusters_against_any_number_of_classes(n_classes, n_clusters):
    rng = np.random.default_rng(n_classes * 10 + n_clusters)
    for _ in range(10):
        targets = rng.integers(0, n_classes, 30).tolist()
        assignments = rng.integers(0, n_clusters, 30).tolist()
        truth = by_brute_force(targets, assignments)
        assert cluster_accuracy(targets, assignments) == pytest.approx(truth, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(labellings, st.permutations(range(5)), st.randoms(use_true_random=False))
def test_new_names_and_a_new_order_change_nothing(labelling, renamed, random):
    targets, assignments = labelling
    truth = cluster_accuracy(targets, assignments)
    assert cluster_accuracy(targets, [renamed[a] for a in assignments]) == truth
    assert cluster_accuracy([f"class {renamed[t]}" for t in targets], assignments) == truth
    pairs = list(zip(targets, assignments, strict=True))
    random.shuffle(pairs)
    assert cluster_accuracy(*map(list, zip(*pairs, strict=True))) == truth


def test_known_values():
    assert cluster_accuracy([0, 0, 1, 1], [1, 1, 0, 0]) == 1.0
    assert cluster_accuracy([0, 0, 1, 1], [0, 1, 2, 3]) == 0.5
    assert cluster_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


TARGETS = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
ASSIGNMENTS = np.array([0, 0, 1, 1, 1, 1, 2, 2, 0])


def entropy(shares):
    return -sum(share * np.log(share) for share in np.ravel(shares) if share > 0)


def joint_shares(targets, assignments):
    return np.array(
        [
            [np.mean((targets == t) & (assignments == a)) for a in np.unique(assignments)]
            for t in np.unique(targets)
        ]
    )


def test_nmi_is_mutual_information_over_the_arithmetic_mean_of_entropies():
    shares = joint_shares(TARGETS, ASSIGNMENTS)
    h_targets, h_assignments = entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0))
    truth = (h_targets + h_assignments - entropy(shares)) / ((h_targets + h_assignments) / 2)
    assert normalized_mutual_info(TARGETS, ASSIGNMENTS) == pytest.approx(truth)
    # the other usual mean would give another number for these
    halves = np.where(ASSIGNMENTS == 0, 0, 1)
    shares = joint_shares(TARGETS, halves)
    h_targets, h_halves = entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0))
    mutual = h_targets + h_halves - entropy(shares)
    assert abs(mutual / np.sqrt(h_targets * h_halves) - 2 * mutual / (h_targets + h_halves)) > 1e-3
    assert normalized_mutual_info(TARGETS, halves) == pytest.approx(
        2 * mutual / (h_targets + h_halves)
    )


def test_ari_by_counting_pairs():
    first, second = np.triu_indices(len(TARGETS), 1)
    same_class = TARGETS[first] == TARGETS[second]
    same_cluster = ASSIGNMENTS[first] == ASSIGNMENTS[second]
    agree = (same_class & same_cluster).sum()
    by_chance = same_class.sum() * same_cluster.sum() / len(first)
    best = (same_class.sum() + same_cluster.sum()) / 2
    truth = (agree - by_chance) / (best - by_chance)
    assert adjusted_rand_index(TARGETS, ASSIGNMENTS) == pytest.approx(truth)


@pytest.mark.parametrize("metric", [normalized_mutual_info, adjusted_rand_index])
def test_names_do_not_matter(metric):
    named = np.array(["z", "a", "m"])[ASSIGNMENTS]
    assert metric(TARGETS, named) == pytest.approx(metric(TARGETS, ASSIGNMENTS))
    assert metric(TARGETS, np.zeros(9, int)) == pytest.approx(0)
    assert isinstance(metric(TARGETS, named), float)


PURITY_TARGETS = ["a", "a", "b", "b", "b", "c"]
PURITY_ASSIGNMENTS = [4, 4, 4, 0, 0, 0]


def test_purity_per_cluster_and_overall():
    assert cluster_purity(PURITY_TARGETS, PURITY_ASSIGNMENTS) == pytest.approx({0: 2 / 3, 4: 2 / 3})
    assert overall_purity(PURITY_TARGETS, PURITY_ASSIGNMENTS) == pytest.approx(4 / 6)


def test_overall_purity_weighs_clusters_by_their_size():
    assert overall_purity([0, 1, 2, 3, 4], [0, 0, 0, 0, 1]) == pytest.approx(2 / 5)


def test_purity_is_of_clusters_not_of_classes():
    one_each = list(range(6))
    assert overall_purity(PURITY_TARGETS, one_each) == 1
    assert overall_purity(one_each, PURITY_TARGETS) == pytest.approx(3 / 6)
    assert cluster_purity(one_each, PURITY_TARGETS) == pytest.approx(
        {"a": 1 / 2, "b": 1 / 3, "c": 1}
    )


SCORE_TARGETS = [0, 0, 0, 1, 1, 2, 2]
SCORE_ASSIGNMENTS = ["x", "x", "y", "y", "z", "w", "x"]


def test_every_figure_under_its_name():
    assert score(SCORE_TARGETS, SCORE_ASSIGNMENTS) == {
        "acc": cluster_accuracy(SCORE_TARGETS, SCORE_ASSIGNMENTS),
        "nmi": normalized_mutual_info(SCORE_TARGETS, SCORE_ASSIGNMENTS),
        "ari": adjusted_rand_index(SCORE_TARGETS, SCORE_ASSIGNMENTS),
        "purity": overall_purity(SCORE_TARGETS, SCORE_ASSIGNMENTS),
    }
    assert len(set(score(SCORE_TARGETS, SCORE_ASSIGNMENTS).values())) == 4


def test_the_same_partition_under_other_numbers_is_as_good():
    """The order of the numbers is the order of NMI's sums, which round."""
    random = np.random.default_rng(0)
    rounded = 0
    for _ in range(50):
        targets = random.integers(7, size=200)
        assignments = np.where(random.random(200) < 0.8, targets, random.integers(7, size=200))
        renamed = random.permutation(7)[assignments]
        one, other = score(targets, assignments), score(targets, renamed)
        rounded += one != other
        for name in one:
            assert is_highest(one[name], [one[name], other[name]])
            assert is_highest(other[name], [one[name], other[name]])
    assert rounded


def test_a_figure_that_is_less_by_one_image_of_a_million_is_not_the_highest():
    assert not is_highest(0.5 - 1e-6, [0.5, 0.5 - 1e-6])
    assert is_highest(0.5, [0.5, 0.5 - 1e-6])


def test_metrics_do_without_torch():
    code = "import sys, dcdc.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
