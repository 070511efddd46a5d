import json

import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.metrics import health_warnings, label_free_score, partition_health
from dcdc.metrics.health import MOST_COMPARED


def one_hot(assignments, n_clusters):
    return np.eye(n_clusters, dtype=np.float32)[assignments]


def test_figures_of_a_small_partition():
    health = partition_health([[0.7, 0.3, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0]])
    assert health.sizes == (2, 1, 0)
    assert health.active_clusters == 2
    assert health.largest_share == pytest.approx(2 / 3)
    assert health.entropy_of_mean == pytest.approx(np.log(2))
    assert health.mean_confidence == pytest.approx(0.7)


def test_balance_has_the_entropy_log_k_and_collapse_none():
    assert partition_health(np.eye(8)).entropy_of_mean == pytest.approx(np.log(8))
    collapsed = partition_health(one_hot([3] * 5, 8))
    assert collapsed.entropy_of_mean == 0
    assert collapsed.mean_confidence == 1


def test_it_is_the_entropy_of_the_mean_not_of_the_counts():
    unsure = partition_health(np.full((4, 2), 0.5))
    assert unsure.sizes == (4, 0)
    assert unsure.entropy_of_mean == pytest.approx(np.log(2))


def test_a_million_half_precise_rows_do_not_lose_count():
    rows = np.full((1_000_000, 2), 0.5, np.float16)
    assert partition_health(rows).mean_confidence == 0.5
    assert partition_health(rows).entropy_of_mean == pytest.approx(np.log(2))


def test_it_goes_into_a_line_of_json():
    health = partition_health(one_hot([0, 1, 1], 3))
    figures = json.loads(json.dumps(health.to_dict()))
    assert figures["sizes"] == [1, 2, 0]
    assert set(figures) == {
        "sizes",
        "active_clusters",
        "largest_share",
        "entropy_of_mean",
        "mean_confidence",
    }


def test_a_healthy_partition_has_no_warning():
    assert health_warnings(partition_health(np.eye(10))) == []
    nine_tenths = partition_health(one_hot([0] * 9 + [1], 2))
    assert health_warnings(nine_tenths) == []


def test_dead_clusters_and_collapse_are_told_apart():
    (dead,) = health_warnings(partition_health(one_hot([0, 1, 2, 3, 4, 5, 6], 10)))
    assert dead.startswith("3 of 10 clusters are empty: ")
    (one_dead,) = health_warnings(partition_health(one_hot([0, 1], 3)))
    assert one_dead.startswith("1 of 3 clusters is empty: ")
    (collapse,) = health_warnings(partition_health(one_hot([0] * 19 + [1], 2)))
    assert collapse.startswith("95% of the images fall into one cluster: ")
    assert len(health_warnings(partition_health(one_hot([0] * 5, 3)))) == 2


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (np.eye(3, dtype=int), "int64"),
        ([[1.0, 0.0], [np.nan, 1.0]], "image 1 sum to nan"),
        ([[1.0, 0.0], [2.0, 3.0]], "image 1 sum to 5"),
        ([[1.5, -0.5]], "image 0"),
        ([[0.5, 0.53]], "image 0 sum to 1.03"),
    ],
)
def test_what_is_no_assignment_is_refused(probabilities, message):
    with pytest.raises(InputError, match=message):
        partition_health(probabilities)


def test_rows_of_low_precision_are_accepted():
    assert partition_health([[0.334, 0.334, 0.334]]).active_clusters == 1


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
    features, labels = blobs(MOST_COMPARED + 500)
    assert label_free_score(features, labels) == label_free_score(features, labels) > 0.9


@pytest.mark.parametrize("labels", [np.zeros(6, int), np.arange(6)])
def test_where_there_is_nothing_to_compare_the_score_is_the_lowest(labels):
    assert label_free_score(blobs(6)[0], labels) == -1
