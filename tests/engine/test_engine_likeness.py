"""The distance to the nearest training image, against slow loops and on clouds of known shape."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from dcdc.engine.likeness import FEWEST_IMAGES, likeness_to


@pytest.fixture
def cloud():
    """Wide in two directions, narrow in two: as features are whose heads look at two."""
    random = np.random.default_rng(0)
    return lambda n: (random.normal(size=(n, 4)) * (10, 5, 0.2, 0.2) + 3).astype(np.float32)


def test_scores_are_distances_to_the_nearest_over_the_ordinary_one(cloud):
    training, others = cloud(200), cloud(30)
    likeness = likeness_to(training)
    placed = (training - likeness.mean) @ likeness.directions
    assert np.allclose(np.cov(placed, rowvar=False, bias=True), np.eye(4), atol=1e-3)
    own = []
    for index, row in enumerate(placed):
        rest = np.delete(placed, index, axis=0)
        own.append(min(np.linalg.norm(row - other) for other in rest))
    ordinary = np.quantile(own, 0.99)
    expected = [
        min(np.linalg.norm((row - likeness.mean) @ likeness.directions - t) for t in placed)
        for row in others
    ]
    assert np.allclose(likeness.score(others), np.array(expected) / ordinary, rtol=1e-3, atol=1e-3)


def test_of_many_training_images_none_is_compared_with_itself(cloud):
    likeness = likeness_to(cloud(2500))  # in more than one piece
    distances, _ = cKDTree(likeness.training).query(likeness.training, k=2)
    expected = np.quantile(distances[:, 1], 0.99)
    assert likeness.ordinary_distance == pytest.approx(expected, rel=1e-3)


def test_one_in_a_hundred_of_its_like_is_called_unlike(cloud):
    flagged = likeness_to(cloud(1000)).score(cloud(5000)) > 1
    assert 0.003 < flagged.mean() < 0.02


def test_a_step_in_a_narrow_direction_is_seen(cloud):
    odd = cloud(200)
    odd[:, 3] += 3
    assert (likeness_to(cloud(1000)).score(odd) > 1).all()


def test_training_images_themselves_are_like_themselves(cloud):
    training = cloud(3000)
    assert (likeness_to(training).score(training) < 0.05).all()


def test_half_precision_is_enough(cloud):
    training, others = cloud(500), cloud(100)
    whole = likeness_to(training).score(others)
    assert np.allclose(likeness_to(training.astype(np.float16)).score(others), whole, atol=0.15)


@pytest.mark.parametrize(
    "features",
    [np.eye(FEWEST_IMAGES - 1), np.ones((100, 4)), np.repeat(np.eye(4), 25, axis=0)],
    ids=["too few", "all the same", "copies of four"],
)
def test_where_nothing_can_be_told_nothing_is(features):
    assert likeness_to(features.astype(np.float16)) is None


def test_few_images_give_few_directions():
    random = np.random.default_rng(0)
    features = random.normal(size=(100, 512))
    likeness = likeness_to(features)
    assert likeness.directions.shape == (512, 20)
    assert (likeness.score(random.normal(size=(500, 512))) > 1).mean() < 0.1
