import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from dcdc.data import from_arrays, load_digits
from dcdc.methods.ac import cluster
from dcdc.metrics import adjusted_rand_index, cluster_accuracy


@pytest.mark.parametrize("exact_up_to", [5000, 0], ids=["pixels", "components"])
def test_digits_come_near_ward_without_a_graph(exact_up_to):
    digits = load_digits()
    found = cluster(digits, 10, 0, exact_up_to=exact_up_to, n_components=30).assignments
    pixels = digits.images.reshape(len(digits.images), -1) / 255
    whole = AgglomerativeClustering(10, linkage="ward").fit_predict(pixels)
    assert adjusted_rand_index(whole, found) > 0.7
    assert cluster_accuracy(digits.targets, found) > 0.8


def test_heaps_that_no_neighbour_joins_are_found(tiny_set):
    found = cluster(tiny_set, 3, 0, n_neighbours=2)
    assert cluster_accuracy(tiny_set.targets, found.assignments) == 1


def test_as_many_clusters_as_images_are_borne():
    images = np.arange(6, dtype=np.uint8).repeat(64).reshape(6, 8, 8, 1) * 40
    assert len(set(cluster(from_arrays(images), 6, 0).assignments)) == 6
