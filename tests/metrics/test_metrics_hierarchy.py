"""Which clusters join first, against average linkage over every pair of images."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import average
from scipy.spatial.distance import pdist

from dcdc.metrics.hierarchy import Hierarchy, Join, join_clusters, joined_labels


def clouds(middles: list[list[float]], sizes: list[int], seed: int = 0):
    """Rows around these points, and the number of each one's cloud."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(middles)), sizes)
    return np.array(middles, float)[labels] + 0.05 * random.normal(size=(len(labels), 3)), labels


PAIRS = [[1, 0, 0], [1, 0.3, 0], [0, 0, 1], [0, 0.5, 1]]


def test_the_nearest_join_first():
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
    hierarchy = join_clusters(points, np.arange(12), 12)
    slow = average(pdist(points, "sqeuclidean"))
    assert [{join.first, join.second} for join in hierarchy.joins] == [
        {int(first), int(second)} for first, second, *_ in slow
    ]
    by_chance = 2 * points.var(axis=0).sum()
    assert [join.distance * by_chance for join in hierarchy.joins] == pytest.approx(slow[:, 2])


def test_a_distance_is_the_mean_over_pairs_of_images():
    points, labels = clouds(PAIRS[:2], [5, 9])
    (join,) = join_clusters(points, labels, 2).joins
    between = [((points[i] - points[j]) ** 2).sum() for i in range(5) for j in range(5, 14)]
    any_two = [((a - b) ** 2).sum() for a in points for b in points]
    assert join.distance == pytest.approx(np.mean(between) / np.mean(any_two))


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
    assert {(a, b) for a, b in zip(found, truth, strict=True) if a >= 0} == {(0, 0), (1, 1)}
    assert (found >= 0).mean() > 0.98


def test_a_stray_image_is_in_no_cluster():
    points, truth = clouds([[1, 0, 0], [0.9, 0.5, 0], [0, -1, 1]], [30, 30, 1])
    found = joined_labels(points, truth, 2, fewest=2)
    assert found.tolist() == [0] * 30 + [1] * 30 + [-1]


def test_a_group_grows_until_it_is_large_enough():
    """Six small groups, and five sixths of a cloud would be a cluster; one beside them is none."""
    points, truth = clouds([[1, 0, 0], [0, 1, 0], [0, -1, 1]], [60, 60, 12])
    tiny = truth * 6 + np.arange(132) % 6
    found = joined_labels(points, tiny, 2, fewest=50)
    assert set(found[truth == 2]) == {-1}
    assert {(a, b) for a, b in zip(found, truth, strict=True) if a >= 0} == {(0, 0), (1, 1)}


def test_of_few_images_the_largest_groups_are_taken():
    points, truth = clouds([[1, 0, 0], [0, 1, 0]], [2, 1])
    assert joined_labels(points, truth, 2, fewest=5).tolist() == [0, 0, 1]


@pytest.mark.parametrize("fewest", [1, 9, 25, 60, 200])
def test_smallest_branches_are_large_and_no_part_of_them_is(fewest):
    random = np.random.default_rng(fewest)
    labels = random.integers(0, 14, 200)
    labels[labels == 5] = 6  # one cluster is empty
    hierarchy = join_clusters(random.normal(size=(200, 3)), labels, 14)
    sizes = np.bincount(labels, minlength=14)
    branches = [[cluster] for cluster in hierarchy.order] + list(hierarchy.members.values())
    large = [set(branch) for branch in branches if sizes[branch].sum() >= fewest]
    slow = [branch for branch in large if not any(other < branch for other in large)]
    found = hierarchy.smallest_branches(sizes, fewest)
    assert sorted(map(sorted, found)) == sorted(map(sorted, slow))
