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
    assert share_of_pairs(np.array([0, 1, 1, 1]), np.array([1, 0, 0, 0]), 2) == 1
    assert share_of_pairs(np.array([0, 1, 2]), np.array([0, 1, 2]), 3) == 0


def test_an_empty_cluster_is_not_found():
    assert share_of_pairs(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), 3) == 0


@pytest.mark.parametrize("n_clouds", [3, 5])
def test_clusters_that_stay_empty_make_no_number_sure(n_clouds):
    """Clouds so dense that one cluster more has nothing to hold: all images still agree."""
    points = clouds(n_clouds, deviation=0.001)
    strengths = prediction_strengths(points, range(2, 9), np.random.default_rng(0), even=True)
    assert strengths[n_clouds] == 1
    assert strengths[n_clouds + 1] < SURE
    assert choose_number(strengths, lowest=3).number == n_clouds


@pytest.mark.parametrize("n_clouds", [3, 5, 7])
def test_as_many_as_there_are_clouds(n_clouds):
    strengths = prediction_strengths(clouds(n_clouds), range(2, 11), np.random.default_rng(0))
    found = choose_number(strengths, lowest=3)
    assert found.number == n_clouds
    assert found.is_settled
    assert strengths[n_clouds] > 0.99
    assert strengths[n_clouds + 1] < SURE


@pytest.mark.parametrize("n_clouds", [5, 7])
def test_of_clusters_of_equal_size_the_right_number_stands_out_more(n_clouds):
    points = clouds(n_clouds, deviation=2.6)
    plain, even = (
        prediction_strengths(points, range(2, 11), np.random.default_rng(0), even=even)
        for even in (False, True)
    )
    assert choose_number(even, lowest=3).number == n_clouds
    assert prominence(even, n_clouds) > prominence(plain, n_clouds) + 0.05


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
    strengths = {2: 0.99, 3: 0.5, 4: 0.95, 5: 0.85, 6: 0.4, 7: 0.6, 8: 0.3}
    found = choose_number(strengths, lowest=3)
    assert (found.number, found.is_settled, found.runners_up) == (4, True, (7,))
    assert choose_number(strengths, lowest=2).runners_up == (2, 7)


def curve(*strengths: float) -> dict[int, float]:
    """From two clusters on."""
    return dict(enumerate(strengths, start=2))


def test_one_cluster_more_that_is_as_sure_is_taken_but_no_other():
    found = choose_number(curve(0.99, 0.5, 0.95, 0.92, 0.91, 0.88, 0.3, 0.2), lowest=3)
    assert (found.number, found.is_settled, found.runners_up) == (6, True, (4,))
    found = choose_number(curve(0.99, 0.5, 0.82, 0.81, 0.79, 0.4, 0.3, 0.2), lowest=3)
    assert found.number == 5  # what is not sure is not taken


def test_a_sure_peak_that_hardly_stands_out_does_not_hide_a_fall():
    """Groups of classes are nearly as sure as the classes, which are told by a fall."""
    rest = (0.85, 0.75, 0.72, 0.7, 0.4, 0.4, 0.4)
    assert choose_number(curve(0.99, 0.9, 0.8, *rest), lowest=3).number == 8
    assert choose_number(curve(0.99, 0.9, 0.6, *rest), lowest=3).number == 5


def test_without_a_sure_peak_it_is_where_the_curve_falls_most():
    strengths = {2: 0.9, 3: 0.7, 4: 0.65, 5: 0.5, 6: 0.55, 7: 0.2, 8: 0.3, 9: 0.2}
    found = choose_number(strengths, lowest=3)
    assert (found.number, found.is_settled, found.runners_up) == (6, False, (8,))


def test_a_fall_that_is_made_up_for_is_none():
    strengths = {2: 0.9, 3: 0.75, 4: 0.4, 5: 0.45, 6: 0.7, 7: 0.5, 8: 0.45, 9: 0.4, 10: 0.4}
    assert choose_number(strengths, lowest=3).number == 6


def test_where_everything_is_weak_a_fall_says_nothing():
    strengths = {2: 0.39, 3: 0.38, 4: 0.39, 5: 0.1, 6: 0.1}
    found = choose_number(strengths, lowest=3)
    assert (found.number, found.is_settled) == (3, False)


def test_the_lowest_of_the_range_is_taken_where_the_curve_falls_after_it():
    """Two clusters are always sure, so three are no peak of the curve."""
    found = choose_number({2: 1.0, 3: 0.99, 4: 0.52, 5: 0.51, 6: 0.46, 7: 0.48, 8: 0.4}, lowest=3)
    assert (found.number, found.is_settled) == (3, True)


def test_the_number_after_the_range_is_never_taken():
    rising = {2: 0.5, 3: 0.6, 4: 0.7, 5: 0.85, 6: 0.9}
    assert choose_number(rising, lowest=3).number < 6
    assert 6 not in choose_number(rising, lowest=3).runners_up


def test_of_peaks_that_are_not_sure_the_highest_is_not_taken():
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
