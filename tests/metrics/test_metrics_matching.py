import numpy as np

from dcdc.metrics import contingency_table, match_clusters


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
