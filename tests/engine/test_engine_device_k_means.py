"""On the CPU's tensors, where its arithmetic is the same; the marker `gpu` has it on a GPU."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from dcdc.engine import device_k_means as subject
from dcdc.engine.device_k_means import device_balanced_centres, device_k_means
from dcdc.engine.k_means import balanced_centres, centres_of
from dcdc.metrics.directions import directions

CPU = torch.device("cpu")


def blobs(n=600, k=12, far=0.0):
    random = np.random.default_rng(0)
    centres = 6 * random.normal(size=(k, 5))
    return (centres[np.arange(n) % k] + random.normal(size=(n, 5)) + far).astype(np.float32)


def inertia(points, centres):
    """By a slow loop."""
    points, centres = points.astype(np.float64), centres.astype(np.float64)
    return sum(min(((point - centre) ** 2).sum() for centre in centres) for point in points)


def sorted_rows(centres):
    return centres[np.lexsort(centres.T)]


@pytest.mark.parametrize("far", [0.0, 1e3], ids=["near 0", "far from 0"])
def test_the_best_of_many_starts_is_that_of_scikit_learn(far):
    points = blobs(far=far)
    found = device_k_means(points, 12, 0, 10, CPU)
    theirs = KMeans(12, n_init=10, random_state=0).fit(points)
    np.testing.assert_allclose(sorted_rows(found), sorted_rows(theirs.cluster_centers_), rtol=1e-3)


def test_on_digits_its_inertia_is_within_a_thousandth_of_scikit_learns():
    points = load_digits().data[:900].astype(np.float32)
    theirs = KMeans(10, n_init=20, random_state=0).fit(points).inertia_
    assert inertia(points, device_k_means(points, 10, 0, 20, CPU)) < 1.001 * theirs


def test_a_seed_has_one_answer_and_another_seed_another():
    points = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    first, again, other = (device_k_means(points, 6, seed, 1, CPU) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(sorted_rows(first), sorted_rows(other))


def test_points_that_do_not_fit_at_once_are_looked_at_in_parts(monkeypatch):
    points = blobs()
    whole = device_k_means(points, 12, 0, 2, CPU)
    monkeypatch.setattr(subject, "_MOST_AT_ONCE", 24 * 70)
    np.testing.assert_allclose(device_k_means(points, 12, 0, 2, CPU), whole, rtol=1e-4, atol=1e-4)


def test_empty_clusters_take_the_farthest_points():
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [9.0, 0.0], [0.0, 7.0]])
    centres = torch.tensor([[[0.0, 0.0], [50.0, 50.0], [60.0, 60.0]]])
    moved = subject._next_centres(points, centres)[0]
    np.testing.assert_allclose(moved[1:], [[9.0, 0.0], [0.0, 7.0]])


def test_fewer_different_points_than_clusters_are_no_fault():
    same = device_k_means(np.ones((5, 3), np.float32), 4, 0, 2, CPU)
    np.testing.assert_allclose(same, 1)
    three = device_k_means(np.array([[0.0], [1], [1], [5]], np.float32), 3, 0, 2, CPU)
    np.testing.assert_allclose(np.sort(three[:, 0]), [0, 1, 5], atol=1e-6)


def test_candidates_are_drawn_by_their_weight():
    weights = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    generator = torch.Generator().manual_seed(0)
    drawn = subject._drawn(weights, 2000, generator)
    shares = torch.bincount(drawn[0], minlength=3) / 2000
    np.testing.assert_allclose(shares, [0.25, 0.75, 0], atol=0.04)
    assert (drawn[1] == 2).all()


def test_balanced_centres_are_those_of_the_cpu():
    points = directions(blobs())
    start = points[:4]
    here = balanced_centres(points, start)
    np.testing.assert_allclose(device_balanced_centres(points, start, CPU), here, atol=1e-4)


@pytest.mark.gpu
def test_on_a_gpu_a_seed_has_one_answer_as_good_as_the_cpus():
    points, gpu = blobs(60_000, 40), torch.device("cuda")
    found, again = (centres_of(points, 40, 0, 10, gpu) for _ in range(2))
    np.testing.assert_array_equal(found, again)
    assert inertia(points[:2000], found) < 1.001 * inertia(
        points[:2000], centres_of(points, 40, 0, 10)
    )
    unit = directions(points)
    start = unit[:4]
    np.testing.assert_allclose(
        balanced_centres(unit, start, gpu), balanced_centres(unit, start), atol=1e-3
    )
