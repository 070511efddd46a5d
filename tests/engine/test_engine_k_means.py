import numpy as np
from scipy.optimize import linear_sum_assignment

from dcdc.engine.k_means import (
    _even_shares,
    balanced_centres,
    directions,
    k_means_centres,
    some_rows,
)


def test_directions_do_not_know_where_codes_lie_nor_how_far():
    codes = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    found = directions(codes)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(directions(7 * codes + 3), found, atol=1e-4)
    same = np.ones((5, 2), np.float32)
    assert np.isfinite(directions(same)).all()


def test_some_rows_rise_and_are_all_where_there_are_few():
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(some_rows(5, 5, random), np.arange(5))
    found = some_rows(100, 7, random)
    assert len(found) == 7
    assert (np.diff(found) > 0).all()


def test_balanced_clusters_share_images_out_as_the_best_even_partition_does():
    """By the exact solution of the transport problem, for centres that stay where they are."""
    random = np.random.default_rng(0)
    points = directions(random.normal(size=(60, 5)).astype(np.float32))
    centres = directions(random.normal(size=(3, 5)).astype(np.float32))
    cosines = points @ centres.T
    _, place = linear_sum_assignment(-np.repeat(cosines, 20, axis=1))
    shares = _even_shares(cosines)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=0), 20, rtol=0.02)
    assert (shares.argmax(axis=1) == place // 20).mean() > 0.9


def test_images_like_nothing_in_particular_do_not_fill_one_cluster():
    random = np.random.default_rng(0)
    kinds = np.arange(600) % 3
    strength = np.where(np.arange(600) % 2, 0.35, 2.0)[:, None]  # every second image is vague
    features = strength * np.eye(3, 20)[kinds] + 0.1 * random.normal(size=(600, 20))
    features[:, 3] += np.where(kinds == 0, 0.5, 0) * (strength[:, 0] < 1)
    points = directions(features.astype(np.float32))
    plain = k_means_centres(points, 3, seed=0, n_init=1)
    even = balanced_centres(points, plain)
    np.testing.assert_allclose(np.linalg.norm(even, axis=1), 1, rtol=1e-5)
    sizes = np.bincount((points @ even.T).argmax(axis=1), minlength=3)
    assert sizes.max() < 240
    assert np.array_equal(even, balanced_centres(points, plain))
