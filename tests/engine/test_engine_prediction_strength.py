import numpy as np
import pytest
import torch

from dcdc.engine.device_k_means import device_k_means
from dcdc.engine.prediction_strength import prediction_strengths
from dcdc.metrics.cluster_number import SURE, choose_number, prominence, share_of_pairs


def clouds(n_clouds: int, n_points: int = 300, deviation: float = 0.5, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    middles = 8 * np.eye(n_clouds, 12)
    return middles[np.arange(n_points) % n_clouds] + deviation * random.normal(size=(n_points, 12))


def test_the_share_of_pairs_is_that_of_a_slow_loop():
    random = np.random.default_rng(1)
    own, other = random.integers(0, 4, 60), random.integers(0, 4, 60)
    shares = []
    for cluster in range(4):
        members = np.flatnonzero(own == cluster)
        pairs = [(a, b) for a in members for b in members if a != b]
        shares.append(np.mean([other[a] == other[b] for a, b in pairs]))
    assert share_of_pairs(own, other, 4) == pytest.approx(min(shares))


def test_a_cluster_of_one_has_no_pair():
    assert share_of_pairs(np.array([0, 1, 1, 1]), np.array([2, 0, 0, 0]), 3) == 1
    assert share_of_pairs(np.array([0, 1, 2]), np.array([0, 1, 2]), 3) == 0


@pytest.mark.parametrize("n_clouds", [3, 5, 7])
def test_as_many_as_there_are_clouds(n_clouds):
    strengths = prediction_strengths(clouds(n_clouds), range(2, 11), np.random.default_rng(0))
    found = choose_number(strengths, lowest=3)
    assert found.number == n_clouds
    assert found.is_settled
    assert strengths[n_clouds] > 0.99
    assert strengths[n_clouds + 1] < SURE


def test_one_cloud_settles_nothing():
    strengths = prediction_strengths(
        np.random.default_rng(0).normal(size=(300, 12)), range(2, 9), np.random.default_rng(0)
    )
    assert not choose_number(strengths, lowest=3).is_settled


def test_the_same_generator_finds_the_same():
    first, again = (
        prediction_strengths(clouds(4), range(2, 6), np.random.default_rng(3)) for _ in range(2)
    )
    assert first == again


def test_the_last_sure_peak_is_taken_and_the_others_are_named():
    strengths = {2: 0.99, 3: 0.5, 4: 0.9, 5: 0.85, 6: 0.4, 7: 0.6, 8: 0.3}
    found = choose_number(strengths, lowest=3)
    assert (found.number, found.is_settled, found.runners_up) == (4, True, (7,))
    assert choose_number(strengths, lowest=2).runners_up == (2, 7)


def test_without_a_sure_peak_one_is_taken_all_the_same_and_said_to_be_unsettled():
    found = choose_number({2: 0.97, 3: 0.9, 4: 0.4, 5: 0.46, 6: 0.3, 7: 0.33, 8: 0.2}, lowest=3)
    assert (found.number, found.is_settled) == (5, False)
    falling = choose_number({2: 0.9, 3: 0.85, 4: 0.5, 5: 0.3}, lowest=3)
    assert (falling.number, falling.is_settled) == (3, False)


def test_of_peaks_that_are_not_sure_the_one_that_stands_out_is_taken_not_the_highest():
    """As CIFAR-10's own features have them: five groups of classes, and ten classes."""
    curve = (0.97, 0.86, 0.64, 0.72, 0.54, 0.57, 0.51, 0.48, 0.63, 0.48, 0.34, 0.30, 0.35)
    strengths = dict(enumerate(curve, start=2))
    found = choose_number(strengths, lowest=3)
    assert (found.number, found.is_settled) == (10, False)
    assert found.runners_up[0] == 5


@pytest.mark.parametrize(
    ("number", "height"),
    [
        (3, 0.9 - 0.2),  # the highest: down to the higher of the lowest values on both sides
        (5, 0.5 - 0.3),  # to the left it falls to .3 before 3 is above it
        (7, 0.3 - 0.2),  # to the left it falls to .2 before 5 is above it, to the right to .1
        (4, 0.0),  # no peak
    ],
)
def test_prominence_is_how_far_the_curve_falls_on_both_sides(number, height):
    strengths = {2: 0.2, 3: 0.9, 4: 0.3, 5: 0.5, 6: 0.2, 7: 0.3, 8: 0.1}
    assert prominence(strengths, number) == pytest.approx(height)


@pytest.mark.parametrize("n_clouds", [3, 7])
def test_by_k_means_of_a_gpu_it_is_the_same_number(monkeypatch, n_clouds):
    """Whose K-Means a CPU does here."""

    def there(points, n_clusters, seed, n_init, device):
        assert device == "a gpu"
        return device_k_means(points, n_clusters, seed, n_init, torch.device("cpu"))

    monkeypatch.setattr("dcdc.engine.prediction_strength.centres_of", there)
    points = clouds(n_clouds).astype(np.float32)
    strengths = prediction_strengths(points, range(2, 11), np.random.default_rng(0), device="a gpu")
    assert choose_number(strengths, lowest=3).number == n_clouds
