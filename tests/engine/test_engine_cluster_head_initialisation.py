import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn

from dcdc.engine.cluster_head_initialisation import SHARPNESS, initialise_heads
from dcdc.metrics import cluster_accuracy


def blobs(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    targets = random.integers(0, 4, n)
    centres = random.normal(0, 5, (4, 16))
    return (centres[targets] + random.normal(0, 0.5, (n, 16))).astype(np.float32), targets


def test_the_head_puts_every_image_with_its_nearest_centre():
    features, targets = blobs()
    head = nn.Linear(16, 4)
    initialise_heads([head], len(features), features.__getitem__, [1])
    with torch.no_grad():
        logits = head(torch.from_numpy(features))
    assert cluster_accuracy(targets, logits.argmax(1).numpy()) == 1.0
    assert abs(logits.numpy().std() - SHARPNESS) < 0.1


@pytest.mark.filterwarnings("error")
def test_fewer_different_rows_than_clusters_are_not_warned_of_for_every_start():
    features = np.repeat(blobs(3)[0], 5, axis=0)
    heads = [nn.Linear(16, 6) for _ in range(2)]
    initialise_heads(heads, len(features), features.__getitem__, [1, 2], spherical=True)
    assert all(torch.isfinite(head.weight).all() for head in heads)


def test_a_seed_fixes_it_and_large_sets_are_sampled(monkeypatch):
    monkeypatch.setattr("dcdc.engine.cluster_head_initialisation.MOST_IMAGES", 100)
    features, targets = blobs()
    heads = [nn.Linear(16, 4) for _ in range(2)]
    for head in heads:
        initialise_heads([head], len(features), features.__getitem__, [1])
    assert torch.equal(heads[0].weight, heads[1].weight)
    with torch.no_grad():
        found = heads[0](torch.from_numpy(features)).argmax(1).numpy()
    assert cluster_accuracy(targets, found) == 1.0


def test_spherical_centres_do_not_follow_the_lengths(monkeypatch):
    """Lengths that vary a hundred times as much as the directions."""
    monkeypatch.setattr("dcdc.engine.k_means.MOST_DIRECTIONS", 8)
    features, targets = blobs()
    lengths = np.exp(np.random.default_rng(1).normal(0, 1.5, (len(features), 1)))
    features = (features * lengths).astype(np.float32)
    found = {}
    for spherical in (False, True):
        head = nn.Linear(16, 4)
        initialise_heads([head], len(features), features.__getitem__, [1], spherical)
        with torch.no_grad():
            logits = head(torch.from_numpy(features))
        found[spherical] = cluster_accuracy(targets, logits.argmax(1).numpy())
    assert found[True] > 0.97
    assert found[False] < 0.9


@pytest.mark.parametrize("spherical", [False, True])
def test_k_means_has_as_many_threads_as_torch(spherical, monkeypatch):
    """Whichever library was imported first: with others it adds up in another order."""
    seen = []
    fit = KMeans.fit

    def spying_fit(self, given):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(self, given)

    monkeypatch.setattr(KMeans, "fit", spying_fit)
    features = np.random.default_rng(0).normal(size=(200, 80))
    before = torch.get_num_threads()
    try:
        with threadpool_limits(2):  # of every library that is loaded: torch's may be one of them
            torch.set_num_threads(1)
            initialise_heads([nn.Linear(80, 3)], 200, features.__getitem__, [0], spherical)
    finally:
        torch.set_num_threads(before)
    assert seen
    assert set(seen) == {1}


def test_without_equal_sizes_a_large_cluster_is_not_cut_for_a_small_one():
    """K-Means cuts the wide large one; joined groups find the two small ones."""
    random = np.random.default_rng(0)
    targets = np.repeat([0, 1, 2], [400, 40, 40])
    middles = np.zeros((3, 16))
    middles[1, 0], middles[2, :2] = 8, (8, 4)
    wide = np.ones((480, 16))
    wide[:400, 2] = 3  # the largest is long: cutting it gains K-Means most
    noise = random.uniform(-1, 1, (480, 16))
    features = (middles[targets] + wide * noise).astype(np.float32)
    scores = {}
    for sizes in ("equal", "free"):
        head = nn.Linear(16, 3)
        initialise_heads([head], 480, features.__getitem__, [1], sizes=sizes)
        with torch.no_grad():
            logits = head(torch.from_numpy(features))
        scores[sizes] = cluster_accuracy(targets, logits.argmax(1).numpy())
        assert abs(logits.numpy().std() - SHARPNESS) < 0.1
    assert scores["free"] > 0.97
    assert scores["equal"] < 0.9


@pytest.mark.filterwarnings("error")
def test_without_equal_sizes_few_different_rows_are_no_fault():
    features = np.repeat(blobs(3)[0], 5, axis=0)
    heads = [nn.Linear(16, 6) for _ in range(2)]
    initialise_heads(heads, len(features), features.__getitem__, [1, 2], sizes="free")
    assert all(torch.isfinite(head.weight).all() for head in heads)


def test_outliers_have_no_part_in_where_the_head_starts():
    """A group of them, far away and half as large as a cluster, would take a centre."""
    random = np.random.default_rng(0)
    targets = np.repeat([0, 1, 2], [100, 100, 45])
    middles = np.zeros((3, 16))
    middles[0, 0], middles[1, 0], middles[2, 1] = -2, 2, 30
    features = (middles[targets] + 0.3 * random.normal(size=(245, 16))).astype(np.float32)
    found = {}
    for outliers in (False, True):
        head = nn.Linear(16, 2)
        initialise_heads([head], 245, features.__getitem__, [1], outliers=outliers)
        with torch.no_grad():
            found[outliers] = head(torch.from_numpy(features[:200])).argmax(1).numpy()
    assert cluster_accuracy(targets[:200], found[True]) == 1.0
    assert cluster_accuracy(targets[:200], found[False]) == 0.5
