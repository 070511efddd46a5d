import numpy as np
import pytest

from dcdc.estimator.scoring import MOST_IMAGES, label_free_score


def blobs(n_images: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(n_images) % 3
    noise = np.random.default_rng(0).normal(0, 0.1, (n_images, 2))
    return np.array([[5, 5], [5, -5], [-5, 0]])[labels] + noise, labels


def test_tight_clusters_apart_score_near_one_and_random_labels_near_zero():
    features, labels = blobs(60)
    assert label_free_score(features, labels) > 0.9
    random = np.random.default_rng(1).integers(0, 3, 60)
    assert label_free_score(features, random) < 0.1


def test_large_sets_are_sampled_the_same_way_every_time():
    features, labels = blobs(MOST_IMAGES + 500)
    assert label_free_score(features, labels) == label_free_score(features, labels) > 0.9


@pytest.mark.parametrize("labels", [np.zeros(6, int), np.arange(6)])
def test_where_there_is_nothing_to_compare_the_score_is_the_lowest(labels):
    assert label_free_score(blobs(6)[0], labels) == -1
