import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.methods.k_means import k_means_on_pixels
from dcdc.metrics import cluster_accuracy


def test_separate_heaps_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    noise = rng.integers(0, 20, (60, 8, 8, 3))
    images = (truth[:, None, None, None] * 100 + noise).astype(np.uint8)
    for seed in range(3):
        assert cluster_accuracy(truth, k_means_on_pixels(images, 3, seed)) == 1


def test_digits_come_out_as_published_for_pixels():
    digits = load_digits()
    found = k_means_on_pixels(digits.images, 10, seed=0)
    assert found.shape == (1797,)
    assert found.dtype == np.int64
    assert 0.75 < cluster_accuracy(digits.targets, found) < 0.83
    assert np.array_equal(found, k_means_on_pixels(digits.images, 10, seed=0))


@pytest.mark.parametrize("n_clusters", [1, 5])
def test_from_one_cluster_to_one_per_image(n_clusters):
    images = np.arange(5, dtype=np.uint8).repeat(64).reshape(5, 8, 8, 1)
    assert len(np.unique(k_means_on_pixels(images, n_clusters, seed=0))) == n_clusters


@pytest.mark.parametrize("n_clusters", [0, 6])
def test_more_clusters_than_images_or_none_are_refused(n_clusters):
    with pytest.raises(InputError, match=f"{n_clusters} clusters for 5 images"):
        k_means_on_pixels(np.zeros((5, 8, 8, 1), np.uint8), n_clusters, seed=0)
