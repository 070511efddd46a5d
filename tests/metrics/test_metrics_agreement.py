import numpy as np
import pytest

from dcdc.metrics.agreement import nearest_by_features, neighbour_agreement


def test_neighbours_and_their_agreement_by_a_plain_loop():
    random = np.random.default_rng(0)
    features, clusters = random.normal(size=(60, 5)), random.integers(0, 3, 60)
    nearest = nearest_by_features(features, 7)
    found = neighbour_agreement(nearest, clusters)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for row in range(60):
        cosines = [(-1 if other == row else unit[row] @ unit[other]) for other in range(60)]
        wanted = sorted(range(60), key=lambda other: -cosines[other])[:7]
        assert set(nearest[row].tolist()) == set(wanted)
        same = [clusters[other] == clusters[row] for other in wanted]
        assert found[row] == pytest.approx(np.mean(same))


def test_clusters_that_follow_the_features_agree_and_others_do_not():
    random = np.random.default_rng(1)
    clusters = np.repeat(np.arange(4), 50)
    features = 5 * np.eye(4)[clusters] + random.normal(size=(200, 4))
    nearest = nearest_by_features(features)
    assert neighbour_agreement(nearest, clusters).mean() > 0.95
    assert neighbour_agreement(nearest, random.permutation(clusters)).mean() < 0.35


@pytest.mark.parametrize("n_images", [1, 2, 5])
def test_few_images(n_images):
    nearest = nearest_by_features(np.zeros((n_images, 3)))
    assert nearest.shape == (n_images, n_images - 1)
    assert neighbour_agreement(nearest, np.zeros(n_images, int)).tolist() == [1] * n_images
