"""What methods for feature vectors have only once they have learnt.

As in `test_methods_learning.py`, each runs a second time with an optimiser that moves nothing.
"""

from dataclasses import replace

import numpy as np
import pytest

from dcdc.data import VectorSet
from dcdc.engine.optimiser import Adam
from dcdc.methods import find_method
from dcdc.metrics import cluster_accuracy

WIDTH = 40
SETTINGS = {
    "temi": {"n_heads": 4, "n_neighbours": 10, "n_steps": 150, "momentum": 0.9, "batch_size": 90},
    "turtle": {"n_steps": 80, "batch_size": 180},
}


@pytest.fixture(params=["learnt", "not-learnt"])
def learnt(request, monkeypatch) -> bool:
    if request.param == "not-learnt":
        monkeypatch.setattr(Adam, "step", lambda _: None)
    return request.param == "learnt"


def faint_groups(seed: int, faint: float = 0.7) -> VectorSet:
    """Three groups whose middles are apart in every feature a little, under noise of 1: a random
    head sees a few features' worth, all of them tell the groups apart."""
    targets = np.arange(180, dtype=np.int64) % 3
    middles = faint * np.random.default_rng(11).choice([-1.0, 1.0], size=(3, WIDTH))
    noise = np.random.default_rng(seed).normal(size=(180, WIDTH))
    names = [str(number) for number in range(180)]
    vectors = (middles[targets] + noise).astype(np.float32)
    return VectorSet(vectors, names, targets, ("a", "b", "c"))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_random_heads_confuse_is_told_apart(name, seed, learnt):
    data = faint_groups(seed)
    found = find_method(name).cluster(data, 3, seed, **SETTINGS[name])
    accuracy = cluster_accuracy(data.targets, found.assignments)
    assert accuracy > 0.9 if learnt else accuracy < 0.75


def test_turtle_learns_from_the_copies_what_the_vectors_do_not_say(learnt):
    told, noise = faint_groups(0, faint=1.1), faint_groups(1, faint=0.0)
    alone = find_method("turtle").cluster(noise, 3, 0, **SETTINGS["turtle"])
    assert cluster_accuracy(told.targets, alone.assignments) < 0.6
    both = replace(noise, copies=told.vectors)
    found = find_method("turtle").cluster(both, 3, 0, **SETTINGS["turtle"])
    accuracy = cluster_accuracy(told.targets, found.assignments)
    assert accuracy > 0.85 if learnt else accuracy < 0.7


@pytest.mark.parametrize("learnt", [True, False], ids=["learnt", "not-learnt"])
def test_gmm_tells_a_dense_group_from_a_wide_one_around_it(learnt):
    """K-Means, where it begins, halves the wide group; widths are learnt step by step."""
    random = np.random.default_rng(0)
    targets = (np.arange(600) % 5 > 0).astype(np.int64)
    dense = np.eye(3)[0] + 0.05 * random.normal(size=(600, 3))
    wide = random.normal(size=(600, 3))
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    rows = np.where(targets[:, None] == 0, dense, wide).astype(np.float32)
    data = VectorSet(rows, [str(number) for number in range(600)], targets, ("a", "b"))
    found = find_method("gmm").cluster(data, 2, 0, iterations=200 if learnt else 1)
    accuracy = cluster_accuracy(targets, found.assignments)
    assert accuracy > 0.95 if learnt else accuracy < 0.85
