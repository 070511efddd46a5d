"""Merging by a graph of neighbours, against the definition spelled out after every merger."""

import math
from itertools import chain

import numpy as np
import pytest
import torch

from dcdc.methods.graph_merging import (
    N_NEAR,
    Merging,
    merge_clusters,
    neighbour_graph,
    tiny_clusters,
)

CPU = torch.device("cpu")


def some_points(n: int, n_kinds: int, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed)
    centres = draws.normal(size=(n_kinds, 4))
    return (centres[np.arange(n) % n_kinds] + 0.4 * draws.normal(size=(n, 4))).astype(np.float32)


def slow_affinity(dense: np.ndarray, first: list[int], second: list[int]) -> float:
    """Sums over all walks of two steps, one by one."""

    def walks(start: list[int], middle: list[int]) -> float:
        total = 0.0
        for i in start:
            for j in middle:
                for k in start:
                    total += dense[i, j] * dense[j, k]
        return total / len(start) ** 2

    return walks(first, second) + walks(second, first)


def slow_best(dense: np.ndarray, clusters: dict[int, list[int]]) -> tuple[float, set[int]]:
    best = (-math.inf, set())
    for label, images in clusters.items():
        near = [
            (slow_affinity(dense, images, others), other)
            for other, others in clusters.items()
            if other != label
        ]
        near = sorted(near, reverse=True)[:N_NEAR]
        nearest = near[0][0]
        rest = [affinity for affinity, _ in near[1:]] + [0.0] * (N_NEAR - len(near))
        score = nearest + sum(nearest - affinity for affinity in rest) / (N_NEAR - 1)
        best = max(best, (score, {label, near[0][1]}), key=lambda found: found[0])
    return best


@pytest.mark.parametrize(("seed", "tiny"), [(0, True), (1, True), (0, False), (1, False)])
def test_every_merger_is_the_one_that_the_definition_asks_for(seed, tiny):
    points = some_points(30, 3, seed)
    labels = tiny_clusters(points, CPU) if tiny else np.arange(30)
    neighbours, weights = neighbour_graph(points, 6, CPU)
    dense = np.zeros((30, 30))
    np.put_along_axis(dense, neighbours, weights, axis=1)
    merging = Merging(labels, neighbours, weights)
    n_compared = 0
    while len(merging.members) > 2:
        clusters = {label: list(images) for label, images in merging.members.items()}
        for label in clusters:
            for other in clusters:
                if other != label:
                    wanted = slow_affinity(dense, clusters[label], clusters[other])
                    assert merging.affinity(label, other) == pytest.approx(wanted, abs=1e-12)
        pair = merging.next_pair()
        if merging.walks[pair[0]]:
            n_compared += 1
            score, best = slow_best(dense, clusters)
            assert set(pair) == best
            assert merging.score[pair[0]] == pytest.approx(score)
        merging.merge(*pair)
        assert sorted(chain(*merging.members.values())) == list(range(30))
    assert n_compared > (1 if tiny else 10)


def test_hundreds_of_clusters_around_a_large_one_merge_as_if_each_was_looked_at_anew():
    """Scores that were put off are those that a whole look gives, whenever they decide."""
    points = np.random.default_rng(0).normal(size=(900, 40)).astype(np.float32)
    labels, graph = tiny_clusters(points, CPU), neighbour_graph(points, 10, CPU)
    merging, anew = Merging(labels, *graph), Merging(labels, *graph)
    n_put_off = 0
    while len(merging.members) > 5:
        for label in anew.walks:
            anew._look(label)
        n_put_off += sum(merging.score[label] != anew.score[label] for label in anew.score)
        pair = merging.next_pair()
        assert set(pair) == set(anew.next_pair())
        merging.merge(*pair)
        anew.merge(*pair)
    assert n_put_off > 100


@pytest.mark.parametrize("k", [8, 20])
def test_groups_that_lie_apart_are_found(k):
    truth = np.arange(120) % 3
    noise = 0.05 * np.random.default_rng(0).normal(size=(120, 3))
    points = (np.eye(3)[truth] + noise).astype(np.float32)
    found = merge_clusters(tiny_clusters(points, CPU), *neighbour_graph(points, k, CPU), 3)
    assert len(set(zip(found.tolist(), truth.tolist(), strict=True))) == 3


def test_one_that_leads_to_a_cluster_and_is_not_led_to_joins_it_first():
    labels = np.array([0, 0, 1, 1, 2])
    neighbours = np.array([[1], [0], [3], [2], [3]])
    found = merge_clusters(labels, neighbours, np.ones((5, 1)), 2)
    assert found.tolist() == [0, 0, 1, 1, 1]


def test_a_graph_in_pieces_is_merged_all_the_same():
    neighbours = np.array([[1], [0], [3], [2], [5], [4]])
    found = merge_clusters(np.array([0, 0, 1, 1, 2, 2]), neighbours, np.ones((6, 1)), 2)
    assert sorted(np.bincount(found).tolist()) == [2, 4]


def test_tiny_clusters_are_chains_of_nearest_neighbours():
    angles = np.array([0.0, 0.1, 0.25, 1.0, 1.1, 3.0, 3.3])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert tiny_clusters(points, CPU).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_tiny_clusters_stay_tiny_around_an_image_that_is_the_nearest_of_many():
    """A hub in the middle of images that lie in all directions from it, some nearer than others."""
    away = np.linspace(0.1, 0.2, 40)[:, None] * np.eye(40, dtype=np.float32)
    hub = np.ones((1, 40), np.float32)
    points = np.concatenate([hub, hub + away]).astype(np.float32)
    assert np.bincount(tiny_clusters(points, CPU, most=41)).tolist() == [41]
    sizes = np.bincount(found := tiny_clusters(points, CPU, most=8))
    assert sorted(sizes.tolist()) == [1] * 33 + [8]
    assert np.flatnonzero(found == found[0]).tolist() == list(range(8))  # the hub, and the nearest


def with_scraps() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two groups of 40 in which each image leads to the next five, a few of them to the other
    group and back, and three pairs that lead to each other and once to the first group."""
    neighbours = [[40 * (i // 40) + (i + step) % 40 for step in range(1, 6)] for i in range(80)]
    for i in range(0, 40, 4):
        neighbours[i][4], neighbours[i + 40][4] = i + 40, i
    for pair in range(80, 86, 2):
        neighbours += [[pair + 1, pair - 80, *(pair + 1,) * 3], [pair, *(pair,) * 4]]
    for pair in range(80, 86, 2):
        neighbours[pair - 80 + 1][4] = pair  # and one image of the group leads to each pair
    labels = np.array([i // 40 for i in range(80)] + [2, 2, 3, 3, 4, 4])
    return labels, np.array(neighbours), np.ones((86, 5))


def test_scraps_join_others_at_the_end_instead_of_being_clusters():
    labels, neighbours, weights = with_scraps()
    assert np.bincount(merge_clusters(labels, neighbours, weights, 2)).tolist() == [84, 2]
    found = merge_clusters(labels, neighbours, weights, 2, to_the_end=True)
    assert np.bincount(found).tolist() == [46, 40]
    assert set(found[80:]) == {found[0]}


def test_clusters_are_no_scraps_while_most_images_are_in_small_ones():
    points = some_points(60, 3)
    graph = neighbour_graph(points, 20, CPU)
    merging = Merging(np.arange(60) // 10, *graph)
    assert not merging.are_others_scraps(3)
    while len(merging.members) > 2:
        merging.merge(*merging.next_pair())
        large = [len(images) for images in merging.members.values() if len(images) > 20]
        assert merging.are_others_scraps(3) == (len(large) <= 3 and sum(large) > 30)


def test_neighbours_weigh_by_their_distance_in_units_of_its_mean():
    points = some_points(12, 2)
    neighbours, weights = neighbour_graph(points, 3, CPU)
    rows = points / np.linalg.norm(points, axis=1, keepdims=True)
    squared = [
        [sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) for j in neighbours[i]]
        for i in range(12)
    ]
    mean = np.mean(squared)
    for i in range(12):
        wanted = [math.exp(-each / mean) for each in squared[i]]
        assert weights[i].tolist() == pytest.approx(wanted, rel=1e-4)
    same = neighbour_graph(np.ones((5, 2), np.float32), 2, CPU)[1]
    assert np.isfinite(same).all()
