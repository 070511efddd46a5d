import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from dcdc.data import from_arrays, load_digits
from dcdc.methods import find_method
from dcdc.methods.ac import half_even, merge_micro_clusters
from dcdc.metrics import adjusted_rand_index, cluster_accuracy

cluster = find_method("ac").cluster


@pytest.mark.parametrize(
    "how", [{}, {"exact_up_to": 0, "n_micro_clusters": 300}], ids=["exact", "micro-clusters"]
)
def test_digits_are_found_however_many_there_may_be(how):
    digits = load_digits()
    found = cluster(digits, 10, 0, **how).assignments
    assert cluster_accuracy(digits.targets, found) > 0.7
    assert len(set(found.tolist())) == 10


def test_micro_clusters_of_one_are_merged_as_scikit_learn_merges_images():
    points = np.random.default_rng(0).normal(size=(150, 4))
    found = merge_micro_clusters(points, np.ones(150, np.int64), 7)
    assert adjusted_rand_index(AgglomerativeClustering(7).fit_predict(points), found) == 1


def test_a_micro_cluster_of_several_counts_as_they_would_alone():
    random = np.random.default_rng(1)
    centres, sizes = random.normal(size=(40, 3)), random.integers(1, 9, 40)
    found = merge_micro_clusters(centres, sizes, 5)
    alone = AgglomerativeClustering(5).fit_predict(np.repeat(centres, sizes, axis=0))
    assert adjusted_rand_index(alone, np.repeat(found, sizes)) == 1


def test_contrast_sets_no_image_apart(tiny_set):
    """Half of the images, bent towards the mean image."""
    images = tiny_set.images.astype(np.float64)
    mean = images.mean(axis=0)
    faded = images.copy()
    faded[::2] = mean + 0.3 * (images[::2] - mean)
    found = cluster(from_arrays(np.round(faded).astype(np.uint8)), 3, 0).assignments
    assert cluster_accuracy(tiny_set.targets, found) == 1


def test_spreads_are_evened_out_half_way_and_nothing_is_made_of_nothing():
    points = np.random.default_rng(0).normal(size=(500, 3)) * [16, 1, 0]
    spreads = half_even(points.astype(np.float32)).std(axis=0)
    np.testing.assert_allclose(spreads, np.sqrt(points.std(axis=0)), rtol=1e-4, atol=1e-6)


def test_up_to_some_thousand_images_the_seed_changes_nothing(tiny_set):
    first, second = (cluster(tiny_set, 3, seed).assignments for seed in (0, 1))
    assert np.array_equal(first, second)


def test_as_many_clusters_as_images_are_borne():
    images = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 1), np.uint8)
    assert len(set(cluster(from_arrays(images), 6, 0).assignments)) == 6
