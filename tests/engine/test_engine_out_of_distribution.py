"""The distance to the nearest training image, against slow loops and on clouds of known shape."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from dcdc.engine.out_of_distribution import FEWEST_IMAGES, out_of_distribution_score_of


@pytest.fixture
def cloud():
    """Wide in two directions, narrow in two: as features are whose heads look at two."""
    random = np.random.default_rng(0)
    return lambda n: (random.normal(size=(n, 4)) * (10, 5, 0.2, 0.2) + 3).astype(np.float32)


def test_scores_are_distances_to_the_nearest_over_the_ordinary_one(cloud):
    training, others = cloud(200), cloud(30)
    found = out_of_distribution_score_of(training)
    placed = (training - found.mean) @ found.directions
    assert np.allclose(np.cov(placed, rowvar=False, bias=True), np.eye(4), atol=1e-3)
    own = []
    for index, row in enumerate(placed):
        rest = np.delete(placed, index, axis=0)
        own.append(min(np.linalg.norm(row - other) for other in rest))
    ordinary = np.quantile(own, 0.99)
    expected = [
        min(np.linalg.norm((row - found.mean) @ found.directions - t) for t in placed)
        for row in others
    ]
    assert np.allclose(found.score(others), np.array(expected) / ordinary, rtol=1e-3, atol=1e-3)


def test_of_many_training_images_none_is_compared_with_itself(cloud):
    found = out_of_distribution_score_of(cloud(2500))  # in more than one piece
    distances, _ = cKDTree(found.training).query(found.training, k=2)
    expected = np.quantile(distances[:, 1], 0.99)
    assert found.ordinary_distance == pytest.approx(expected, rel=1e-3)


def test_one_in_a_hundred_of_its_like_is_called_out_of_distribution(cloud):
    flagged = out_of_distribution_score_of(cloud(1000)).score(cloud(5000)) > 1
    assert 0.003 < flagged.mean() < 0.02


def test_a_step_in_a_narrow_direction_is_seen(cloud):
    odd = cloud(200)
    odd[:, 3] += 3
    assert (out_of_distribution_score_of(cloud(1000)).score(odd) > 1).all()


def test_training_images_themselves_are_like_themselves(cloud):
    training = cloud(3000)
    assert (out_of_distribution_score_of(training).score(training) < 0.05).all()


def test_half_precision_is_enough(cloud):
    training, others = cloud(500), cloud(100)
    whole = out_of_distribution_score_of(training).score(others)
    assert np.allclose(
        out_of_distribution_score_of(training.astype(np.float16)).score(others), whole, atol=0.15
    )


@pytest.mark.parametrize(
    "features",
    [np.eye(FEWEST_IMAGES - 1), np.ones((100, 4)), np.repeat(np.eye(4), 25, axis=0)],
    ids=["too few", "all the same", "copies of four"],
)
def test_where_nothing_can_be_told_nothing_is(features):
    assert out_of_distribution_score_of(features.astype(np.float16)) is None


@pytest.mark.parametrize("kept", [np.float16, np.float32, np.float64])
def test_copies_of_a_few_images_tell_nothing_whatever_products_round(kept):
    """A processor's own order of sums leaves a copy a small way off, of some shapes."""
    random = np.random.default_rng(0)
    for n_features in (3, 8, 17, 64, 129):
        for n_kinds in (2, 5, 9):
            kinds = random.normal(size=(n_kinds, n_features)) + random.normal()
            copies = kinds[random.integers(n_kinds, size=150)]
            assert out_of_distribution_score_of(copies.astype(kept)) is None, (n_features, n_kinds)


@pytest.mark.parametrize("kept", [np.float16, np.float32])
@pytest.mark.parametrize("share", [0.05, 1.0], ids=["some", "all"])
def test_copies_that_differ_in_last_digits_tell_nothing(kept, share):
    """As a network answers for copies that come in different batches."""
    random = np.random.default_rng(0)
    for n_kinds in (1, 4, 9):
        kinds = np.maximum(random.normal(size=(n_kinds, 64)) + 0.5, 0).astype(kept)
        copies = kinds[random.integers(n_kinds, size=200)]
        up = random.random(copies.shape) < share * 0.5
        down = ~up & (random.random(copies.shape) < share)
        copies = np.where(up, np.nextafter(copies, kept(np.inf)), copies)
        copies = np.where(down & (copies > 0), np.nextafter(copies, kept(0)), copies)
        assert out_of_distribution_score_of(copies) is None, n_kinds


def test_copies_among_images_that_differ_leave_the_ordinary_distance(cloud):
    training = cloud(200)
    mixed = np.concatenate([training, training[:100]])
    ordinary = out_of_distribution_score_of(mixed).ordinary_distance
    assert ordinary == pytest.approx(
        out_of_distribution_score_of(training).ordinary_distance, rel=0.3
    )


def test_small_distances_are_not_taken_for_rounding():
    """Ten thousand images along one line, far from its origin, lie close together."""
    random = np.random.default_rng(0)
    along = random.normal(size=(10_000, 1)) @ random.normal(size=(1, 6)) + 5
    found = out_of_distribution_score_of(along.astype(np.float32))
    assert found.directions.shape == (6, 1)
    distances, _ = cKDTree(found.training).query(found.training, k=2)
    assert 1e-4 < found.ordinary_distance < 1e-2
    expected = np.quantile(distances[:, 1], 0.99)
    assert found.ordinary_distance == pytest.approx(expected, rel=1e-3)


def test_scores_of_close_images_are_of_their_distances_not_of_products():
    """Products of the far apart round by as much as neighbours differ."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 3))
    pairs = np.concatenate([rows, rows + 0.02]).astype(np.float32)
    found = out_of_distribution_score_of(pairs)
    beside = pairs + np.float32(2e-4)
    placed = (beside - found.mean) @ found.directions
    expected, _ = cKDTree(found.training).query(placed)
    assert np.allclose(found.score(beside) * found.ordinary_distance, expected, rtol=0.02)


def test_few_images_give_few_directions():
    random = np.random.default_rng(0)
    features = random.normal(size=(100, 512))
    found = out_of_distribution_score_of(features)
    assert found.directions.shape == (512, 20)
    assert (found.score(random.normal(size=(500, 512))) > 1).mean() < 0.1
