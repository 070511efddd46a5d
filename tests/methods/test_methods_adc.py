"""What ADC starts again from, and refuses."""

import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.methods import find_method
from dcdc.methods.adc import centroids_by_k_means


def test_centroids_start_among_their_own_cluster():
    draws = np.random.default_rng(0)
    truth = np.arange(90) % 3
    points = (20 * np.eye(3)[truth] + draws.normal(size=(90, 3))).astype(np.float32)
    found = centroids_by_k_means(points, 3, 4, seed=0)
    nearest = (found @ np.eye(3)).argmax(axis=1).reshape(3, 4)
    assert (nearest == nearest[:, :1]).all()
    assert sorted(nearest[:, 0]) == [0, 1, 2]
    assert len(np.unique(found, axis=0)) == 12


def test_a_cluster_of_few_points_has_some_twice():
    points = np.array([[0, 0], [0, 1], [9, 9], [9, 9], [9, 9]], np.float32)
    found = centroids_by_k_means(points, 2, 3, seed=0)
    assert {tuple(row) for row in found.tolist()} == {tuple(row) for row in points.tolist()}


@pytest.mark.parametrize("setting", ["n_centroids", "n_embedded", "n_copies", "n_steps"])
def test_nothing_of_something_is_refused(setting, tiny_set):
    with pytest.raises(InputError, match=f"^{setting} = 0 must be above 0$"):
        find_method("adc").cluster(tiny_set, 3, 0, **{setting: 0})
