import numpy as np
import pytest
import torch

from dcdc.losses.heads import class_affinity, sample_affinity
from dcdc.report.views import sorted_affinities


def cosine(left, right) -> float:
    lengths = np.sqrt((left**2).sum()) * np.sqrt((right**2).sum())
    return float((left * right).sum() / lengths)


def test_every_value_against_a_slow_loop(make_sample):
    assignments = [2, 0, 1, 1, 0, 2, 2]
    targets = np.array(list("bacbaca"))
    sample = make_sample(assignments, n_clusters=4)  # the last cluster is empty
    found = sorted_affinities(sample, targets)
    place = {int(row): number for number, row in enumerate(sample.view_rows)}
    assign, perturbed = sample.view_assign, sample.view_assign_perturbed
    for i, row in enumerate(found.rows):
        for j, other in enumerate(found.rows):
            wanted = cosine(assign[place[row]], perturbed[place[other]])
            assert found.sample[i, j] == pytest.approx(wanted, abs=1e-5)
            assert found.ideal_sample[i, j] == (targets[row] == targets[other])
    for i, cluster in enumerate(found.clusters):
        for j, other in enumerate(found.clusters):
            wanted = cosine(assign[:, cluster], perturbed[:, other])
            assert found.classes[i, j] == pytest.approx(wanted, abs=1e-5)
    assert np.array_equal(found.ideal_classes, np.eye(4))
    assert sorted(found.clusters) == [0, 1, 2, 3]


def test_they_are_the_matrices_that_training_contrasts(make_sample):
    sample = make_sample([0, 0, 1, 1, 2], n_clusters=3)
    found = sorted_affinities(sample, np.array([0, 0, 1, 1, 2]))
    assign = torch.from_numpy(sample.view_assign)
    perturbed = torch.from_numpy(sample.view_assign_perturbed)
    assert np.allclose(found.sample, sample_affinity(assign, perturbed), atol=1e-6)
    assert np.allclose(found.classes, class_affinity(assign, perturbed), atol=1e-6)


def test_rows_go_by_class_and_clusters_by_their_matched_class(make_sample):
    targets = np.array(["10", "10", "9", "9", "2", "2"])
    found = sorted_affinities(make_sample([0, 0, 2, 2, 1, 1], n_clusters=4), targets)
    assert found.labels == ["2", "9", "10"]  # by value
    assert found.block_sizes == [2, 2, 2]
    assert found.rows.tolist() == [4, 5, 2, 3, 0, 1]
    assert found.clusters == [1, 2, 0, 3]  # the empty one last
    blocks = np.kron(np.eye(3), np.ones((2, 2)))
    assert np.array_equal(found.ideal_sample, blocks)


def test_without_targets_rows_go_by_cluster(make_sample):
    assignments = np.array([2, 0, 2, 0])
    found = sorted_affinities(make_sample(assignments, n_clusters=3), assignments)
    assert found.labels == [0, 2]
    assert found.rows.tolist() == [1, 3, 0, 2]
    assert found.clusters == [0, 2, 1]


def test_within_a_class_rows_go_by_cluster(make_sample):
    targets = np.array(["a"] * 5)
    found = sorted_affinities(make_sample([1, 0, 1, 0, 1], n_clusters=2), targets)
    assert found.rows.tolist() == [0, 2, 4, 1, 3]


def test_a_column_that_nobody_uses_stays_finite(make_sample):
    sample = make_sample([0, 0, 0], n_clusters=2)
    sample.view_assign[:] = sample.view_assign_perturbed[:] = [1, 0]
    found = sorted_affinities(sample, np.array([0, 0, 0]))
    assert np.allclose(found.classes, [[1, 0], [0, 0]])
    assert np.allclose(found.sample, 1)


@pytest.mark.parametrize(("n_images", "n_clusters"), [(1, 1), (1, 2), (400, 200)])
def test_one_image_one_cluster_and_two_hundred(make_sample, n_images, n_clusters):
    assignments = np.arange(n_images) % n_clusters
    found = sorted_affinities(make_sample(assignments, n_clusters=n_clusters), assignments)
    assert found.sample.shape == found.ideal_sample.shape == (n_images, n_images)
    assert found.classes.shape == found.ideal_classes.shape == (n_clusters, n_clusters)
    assert sum(found.block_sizes) == n_images
    assert np.isfinite(found.sample).all()
