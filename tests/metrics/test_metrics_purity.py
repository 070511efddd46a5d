import pytest

from dcdc.metrics import cluster_purity, overall_purity

TARGETS = ["a", "a", "b", "b", "b", "c"]
ASSIGNMENTS = [4, 4, 4, 0, 0, 0]


def test_purity_per_cluster_and_overall():
    assert cluster_purity(TARGETS, ASSIGNMENTS) == pytest.approx({0: 2 / 3, 4: 2 / 3})
    assert overall_purity(TARGETS, ASSIGNMENTS) == pytest.approx(4 / 6)


def test_overall_purity_weighs_clusters_by_their_size():
    assert overall_purity([0, 1, 2, 3, 4], [0, 0, 0, 0, 1]) == pytest.approx(2 / 5)


def test_purity_is_of_clusters_not_of_classes():
    one_each = list(range(6))
    assert overall_purity(TARGETS, one_each) == 1
    assert overall_purity(one_each, TARGETS) == pytest.approx(3 / 6)
    assert cluster_purity(one_each, TARGETS) == pytest.approx({"a": 1 / 2, "b": 1 / 3, "c": 1})
