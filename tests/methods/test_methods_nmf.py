import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.methods import find_method
from dcdc.metrics import cluster_accuracy

cluster = find_method("nmf").cluster


@pytest.mark.parametrize("exact_up_to", [5000, 0], ids=["exact", "mini-batches"])
def test_images_of_one_part_each_are_told_apart_by_their_part(tiny_set, exact_up_to):
    found = cluster(tiny_set, 3, 0, exact_up_to=exact_up_to, batch_size=20)
    assert cluster_accuracy(tiny_set.targets, found.assignments) == 1
    assert found.features.shape == (48, 3)
    assert found.features.min() >= 0


def test_digits_by_mini_batches_come_near_the_exact_answer():
    digits = load_digits()
    for exact_up_to in (5000, 0):
        found = cluster(digits, 10, 0, exact_up_to=exact_up_to, n_init=3).assignments
        assert cluster_accuracy(digits.targets, found) > 0.5


def test_more_clusters_than_pixels_are_borne():
    found = cluster(load_digits(), 70, 0, n_init=1, iterations=5).assignments
    assert found.max() < 70
    assert found.dtype == np.int64
