import numpy as np
import pytest

from dcdc.data import from_arrays, load_digits
from dcdc.methods import find_method
from dcdc.methods.sc import near_landmarks, singular_vectors
from dcdc.metrics import cluster_accuracy

cluster = find_method("sc").cluster


def rings(n_images: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two rings, one inside the other, in two pixels: no K-Means can tell them apart."""
    random = np.random.default_rng(0)
    truth = np.arange(n_images) % 2
    angle = random.uniform(0, 2 * np.pi, n_images)
    radius = np.where(truth, 110, 30)
    images = np.zeros((n_images, 8, 8, 1), np.uint8)
    images[:, 0, 0, 0] = 127 + radius * np.cos(angle)
    images[:, 0, 1, 0] = 127 + radius * np.sin(angle)
    return images, truth


@pytest.mark.parametrize("exact_up_to", [5000, 0], ids=["exact", "landmarks"])
def test_rings_that_no_centre_describes_are_found(exact_up_to):
    images, truth = rings()
    found = cluster(from_arrays(images), 2, 0, exact_up_to=exact_up_to, n_landmarks=60, n_near=3)
    assert cluster_accuracy(truth, found.assignments) == 1


def test_digits_by_landmarks_come_near_the_exact_answer():
    digits = load_digits()
    exact = cluster(digits, 10, 0).assignments
    landmarks = cluster(digits, 10, 0, exact_up_to=0, n_landmarks=500).assignments
    assert cluster_accuracy(digits.targets, exact) > 0.75
    assert cluster_accuracy(digits.targets, landmarks) > 0.7


def test_weights_are_of_the_nearest_landmarks_and_sum_to_one():
    random = np.random.default_rng(0)
    points = random.normal(size=(5000, 3)).astype(np.float32)
    landmarks = random.normal(size=(7, 3)).astype(np.float32)
    weights = near_landmarks(points, landmarks, 2).toarray()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    for row in (0, 4096, 4999):
        distances = np.linalg.norm(points[row] - landmarks, axis=1)
        assert set(np.flatnonzero(weights[row])) == set(np.argsort(distances)[:2])
        assert weights[row].argmax() == distances.argmin()


def test_vectors_are_the_leading_singular_vectors():
    random = np.random.default_rng(0)
    points, landmarks = random.normal(size=(200, 3)), random.normal(size=(9, 3))
    weights = near_landmarks(points.astype(np.float32), landmarks.astype(np.float32), 4)
    dense = weights.toarray()
    left, _, _ = np.linalg.svd(dense / np.sqrt(dense.sum(axis=0)), full_matrices=False)
    found = singular_vectors(weights, 3)
    np.testing.assert_allclose(np.abs(found), np.abs(left[:, :3]), atol=1e-4)


def test_as_many_clusters_as_images_are_borne():
    images = np.arange(9, dtype=np.uint8).repeat(64).reshape(9, 8, 8, 1) * 25
    found = cluster(from_arrays(images), 9, seed=0).assignments
    assert found.shape == (9,)
