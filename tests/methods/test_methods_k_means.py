import numpy as np
import pytest
from sklearn.cluster import KMeans

from dcdc.data import from_arrays, load_digits
from dcdc.errors import InputError
from dcdc.methods import find_method
from dcdc.methods.k_means import best_of_starts
from dcdc.metrics import cluster_accuracy

cluster = find_method("k-means").cluster


def test_separate_groups_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    noise = rng.integers(0, 20, (60, 8, 8, 3))
    images = from_arrays((truth[:, None, None, None] * 100 + noise).astype(np.uint8))
    for seed in range(3):
        assert cluster_accuracy(truth, cluster(images, 3, seed).assignments) == 1


def test_digits_come_out_as_published_for_pixels():
    digits = load_digits()
    found = cluster(digits, 10, seed=0).assignments
    assert found.shape == (1797,)
    assert found.dtype == np.int64
    assert 0.75 < cluster_accuracy(digits.targets, found) < 0.83
    assert np.array_equal(found, cluster(digits, 10, seed=0).assignments)


def test_up_to_one_cluster_per_image():
    images = np.arange(5, dtype=np.uint8).repeat(64).reshape(5, 8, 8, 1)
    assert len(np.unique(cluster(from_arrays(images), 5, seed=0).assignments)) == 5


@pytest.mark.parametrize("n_clusters", [0, 1, 6])
def test_one_cluster_or_more_than_images_are_refused(n_clusters):
    images = np.arange(5, dtype=np.uint8).repeat(64).reshape(5, 8, 8, 1)
    with pytest.raises(InputError, match=f"{n_clusters} clusters for 5 images"):
        cluster(from_arrays(images), n_clusters, seed=0)


def test_images_that_are_all_the_same_are_refused():
    with pytest.raises(InputError, match="all 5 images are the same"):
        cluster(from_arrays(np.full((5, 8, 8, 1), 7, np.uint8)), 2, seed=0)


def test_starts_in_few_directions_are_as_good_as_starts_in_all():
    random = np.random.default_rng(0)
    centres = random.normal(size=(8, 300))
    noise = random.normal(size=(600, 300))
    points = (centres[random.integers(0, 8, 600)] + 3 * noise).astype(np.float32)

    found = best_of_starts(points, 8, n_init=10, seed=0)

    plain = KMeans(8, n_init=10, random_state=0).fit(points)
    assert found.inertia_ == pytest.approx(plain.inertia_, rel=1e-3)
    assert found.cluster_centers_.shape == (8, 300)
    distances = ((points[:, None] - found.cluster_centers_) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == found.labels_).mean() > 0.99
