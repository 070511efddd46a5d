"""Which clusters join first, against average linkage over every pair of images."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import average
from scipy.spatial.distance import pdist

from dcdc.metrics.hierarchy import Hierarchy, Join, join_clusters, joined_labels


def clouds(middles: list[list[float]], sizes: list[int], seed: int = 0):
    """Unit rows around these directions, and the number of each one's cloud."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(middles)), sizes)
    rows = np.array(middles, float)[labels] + 0.05 * random.normal(size=(len(labels), 3))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


PAIRS = [[1, 0, 0], [1, 0.3, 0], [0, 0, 1], [0, 0.5, 1]]


def test_the_most_alike_join_first():
    hierarchy = join_clusters(*clouds(PAIRS, [30, 8, 12, 20]), 4)
    assert hierarchy.groups(4) == [[0], [1], [2], [3]]
    assert sorted(map(sorted, hierarchy.groups(3))) == [[0, 1], [2], [3]]
    assert sorted(map(sorted, hierarchy.groups(2))) == [[0, 1], [2, 3]]
    assert [join.n_images for join in hierarchy.joins] == [38, 32, 70]
    assert hierarchy.is_whole


def test_joins_are_those_of_average_linkage_over_all_images():
    """Each image a cluster of its own: then scipy has the same."""
    random = np.random.default_rng(3)
    points = random.normal(size=(12, 5))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    hierarchy = join_clusters(points, np.arange(12), 12)
    slow = average(pdist(points, "cosine"))
    assert [{join.first, join.second} for join in hierarchy.joins] == [
        {int(first), int(second)} for first, second, *_ in slow
    ]
    assert [1 - join.alike for join in hierarchy.joins] == pytest.approx(slow[:, 2].tolist())


def test_likeness_is_the_mean_over_pairs_of_images():
    points, labels = clouds(PAIRS[:2], [5, 9])
    (join,) = join_clusters(points, labels, 2).joins
    slow = [points[i] @ points[j] for i in range(5) for j in range(5, 14)]
    assert join.alike == pytest.approx(np.mean(slow))


def test_empty_clusters_and_images_of_none_take_no_part():
    points, labels = clouds(PAIRS, [10, 10, 10, 10])
    labels = np.array([0, 2, 5, -1])[labels]
    hierarchy = join_clusters(points, labels, 6)
    assert sorted(hierarchy.order) == [0, 2, 5]
    assert hierarchy.joins[-1].n_images == 30
    assert hierarchy.is_whole


def test_one_cluster_in_use_joins_nothing():
    hierarchy = join_clusters(*clouds(PAIRS[:1], [5]), 3)
    assert (hierarchy.joins, hierarchy.order, hierarchy.is_whole) == ((), [], True)


@pytest.mark.parametrize("joins", [[(0, 1), (0, 2)], [(0, 4), (1, 2)], [(0, 1), (2, 2)]])
def test_what_does_not_join_all_once_is_not_whole(joins):
    made = tuple(Join(first, second, 0.5, 9) for first, second in joins)
    assert not Hierarchy(3, made).is_whole


def test_small_groups_become_clusters_of_unequal_size():
    """One of them ten times the other: K-Means would cut it, and joins do not."""
    points, truth = clouds([[1, 0, 0], [0, 1, 0]], [200, 20])
    tiny = truth * 8 + np.arange(220) % 8
    found = joined_labels(points, tiny, 2, fewest=3)
    assert np.array_equal(
        np.unique(found, return_counts=True)[1][found], np.array([200, 20])[truth]
    )


def test_a_stray_image_is_no_cluster():
    points, truth = clouds([[1, 0, 0], [0.9, 0.5, 0], [0, -1, 1]], [30, 30, 1])
    found = joined_labels(points, truth, 2, fewest=2)
    assert len(set(found[:30]) | set(found[30:60])) == 2
    assert found[60] in (0, 1)
