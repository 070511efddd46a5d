import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.metrics import (
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    contingency_table,
    match_clusters,
    normalized_mutual_info,
    overall_purity,
    score,
)

COMPARING = [
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    contingency_table,
    match_clusters,
    normalized_mutual_info,
    overall_purity,
    score,
]


@pytest.mark.parametrize("metric", COMPARING)
@pytest.mark.parametrize(
    ("targets", "assignments", "message"),
    [
        ([0, 1], [0, 1, 1], "2 targets but 3 assignments"),
        ([], [], r"targets has shape \(0,\)"),
        ([[0, 1]], [0, 1], r"targets has shape \(1, 2\)"),
        (0, [0], r"targets has shape \(\)"),
        ([0, 1], [[0], [1]], r"assignments has shape \(2, 1\)"),
        ([0, 1], [0, float("nan")], "assignments has NaN at position 1"),
        ([0.5, 1], [0, 1], "targets has type float64"),
        (["a", float("nan")], [0, 1], "targets has mixed or missing"),
        ([None, 1], [0, 1], "targets has mixed or missing"),
        ([[0], [1, 2]], [0, 1], "targets cannot be read"),
    ],
)
def test_what_is_no_pair_of_labellings_is_refused(metric, targets, assignments, message):
    with pytest.raises(InputError, match=message):
        metric(targets, assignments)


@pytest.mark.parametrize(
    "targets",
    [
        ["b", "b", "a", "c"],
        np.array(["b", "b", "a", "c"], object),
        np.array([b"b", b"b", b"a", b"c"]),
        np.array([1, 1, 0, 250], np.uint8),
        np.array([-(2**60), -(2**60), 3, 2**60]),
        np.array([2**63, 2**63, 1, 2**63 + 1], np.uint64),
        (7, 7, 5, 9),
    ],
)
def test_any_integer_or_string_type(targets):
    assert cluster_accuracy(targets, [0, 0, 1, 1]) == 0.75
    assert cluster_accuracy([0, 0, 1, 1], targets) == 0.75


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [[0], [0, 0, 0], list(range(60)), [True, False, True]])
def test_a_partition_agrees_with_itself_without_a_warning(labels):
    assert score(labels, labels) == pytest.approx({"acc": 1, "nmi": 1, "ari": 1, "purity": 1})


def test_table_counts_classes_by_clusters():
    table = contingency_table(["b", "a", "b", "b"], [9, 9, 10, 10])
    assert table.tolist() == [[1, 0], [1, 2]]


def test_table_does_not_need_labels_that_are_dense():
    assert contingency_table([10**12, -5], ["x", "x"]).tolist() == [[1], [1]]


def test_matching_in_the_labels_that_came_in():
    targets = ["cat", "cat", "dog", "dog", "ant"]
    matched = match_clusters(targets, np.array([3, 3, 0, 0, 7]))
    assert matched == {0: "dog", 3: "cat", 7: "ant"}
    assert list(matched) == [0, 3, 7]
    assert all(type(cluster) is int for cluster in matched)


def test_the_best_matching_is_not_the_greedy_one():
    # cluster 0 shares 5 with class 0 and 4 with class 1; cluster 1 shares 4 with class 0 alone
    targets = [0] * 5 + [1] * 4 + [0] * 4
    assignments = [0] * 9 + [1] * 4
    assert match_clusters(targets, assignments) == {0: 1, 1: 0}


def test_surplus_clusters_and_surplus_classes_stay_unmatched():
    assert match_clusters([0, 0, 0, 1], [5, 5, 6, 7]) == {5: 0, 7: 1}
    assert match_clusters([5, 5, 6, 7], [0, 0, 0, 1]) == {0: 5, 1: 7}
