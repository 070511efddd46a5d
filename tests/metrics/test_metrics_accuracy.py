from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcdc.metrics import cluster_accuracy

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
