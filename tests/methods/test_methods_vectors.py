"""Methods on feature vectors: which take them, what they find, what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from dcdc.data import VectorSet
from dcdc.errors import InputError
from dcdc.methods import METHODS, find_method
from dcdc.metrics import cluster_accuracy

TAKEN = ("k-means", "sc", "ac", "nmf", "gmm", "temi", "turtle", "dcdc")
SHORT = {
    "temi": {"n_steps": 60, "n_neighbours": 5, "n_heads": 4, "momentum": 0.9},
    "turtle": {"n_steps": 60},
    "dcdc": {"epochs": 3},
}


def groups(seed: int = 0, n_rows: int = 60, width: int = 16) -> VectorSet:
    """Three, far apart, with no value below 0."""
    random = np.random.default_rng(seed)
    targets = np.arange(n_rows, dtype=np.int64) % 3
    middles = 6 * np.random.default_rng(5).uniform(size=(3, width))
    vectors = np.abs(middles[targets] + random.normal(size=(n_rows, width)) / 2)
    names = [str(number) for number in range(n_rows)]
    return VectorSet(vectors.astype(np.float32), names, targets, ("a", "b", "c"))


def run(name: str, data: VectorSet, seed: int = 0, **changes):
    return find_method(name).cluster(data, 3, seed, **(SHORT.get(name, {}) | changes))


def test_methods_say_by_their_types_what_they_take():
    assert tuple(name for name in METHODS.names() if find_method(name).fits(groups())) == TAKEN


@pytest.mark.parametrize("name", TAKEN)
def test_groups_that_are_far_apart_are_found(name):
    data = groups()
    assert cluster_accuracy(data.targets, run(name, data).assignments) > 0.95


@pytest.mark.parametrize("name", TAKEN)
def test_one_seed_one_answer_whatever_the_targets_say(name):
    data = groups()
    blind = replace(data, targets=None, class_names=())
    assert np.array_equal(run(name, data).assignments, run(name, blind).assignments)


@pytest.mark.parametrize("name", TAKEN)
def test_half_precision_is_taken(name):
    data = groups()
    half = replace(data, vectors=data.vectors.astype(np.float16))
    assert cluster_accuracy(data.targets, run(name, half).assignments) > 0.95


def test_k_means_is_on_directions_from_the_mean():
    lengths = np.random.default_rng(1).lognormal(size=(80, 1))
    rows = (lengths * np.random.default_rng(0).gamma(1, size=(80, 6))).astype(np.float32)
    data = VectorSet(rows, [str(number) for number in range(80)])
    away = rows - rows.mean(axis=0)
    points = away / np.linalg.norm(away, axis=1, keepdims=True)
    by_hand = KMeans(3, n_init=10, random_state=4).fit_predict(points)
    found = run("k-means", data, seed=4).assignments
    assert np.array_equal(found, by_hand)
    plain = KMeans(3, n_init=10, random_state=4).fit_predict(rows)
    assert cluster_accuracy(plain.astype(np.int64), found) < 0.8


@pytest.mark.parametrize("name", sorted(set(METHODS.names()) - set(TAKEN)))
def test_what_needs_images_refuses_vectors_in_one_line(name):
    with pytest.raises(InputError, match=f"^{name} takes images, not feature vectors$"):
        find_method(name).cluster(groups(), 3, 0)


@pytest.mark.parametrize("name", ["gmm", "temi", "turtle"])
def test_what_needs_vectors_says_how_images_get_some(name, tiny_set):
    told = f"^{name} takes feature vectors, not images: name the pretrained network"
    with pytest.raises(InputError, match=told):
        find_method(name).cluster(tiny_set, 3, 0)


def test_nmf_refuses_values_below_zero():
    data = groups()
    vectors = data.vectors.copy()
    vectors[[2, 7], 3] = -0.5
    with pytest.raises(InputError, match=r"^nmf takes no value below 0, and 2 of 60 feature"):
        run("nmf", replace(data, vectors=vectors))
    assert not find_method("nmf").fits(replace(data, vectors=vectors))


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        *(("gmm", each) for each in ("n_components", "n_init", "iterations")),
        *(("temi", each) for each in ("n_heads", "n_neighbours", "beta", "temperature")),
        *(("temi", each) for each in ("n_steps", "batch_size", "learning_rate")),
        *(("turtle", each) for each in ("n_inner_steps", "n_steps", "batch_size", "inner_rate")),
    ],
)
def test_a_setting_of_nothing_is_refused(name, setting):
    with pytest.raises(InputError, match=f"{setting} = 0 must be above 0"):
        run(name, groups(), **{setting: 0})


@pytest.mark.parametrize("name", ["gmm", "temi", "turtle"])
def test_shares_are_of_the_answer(name):
    found = run(name, groups())
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(found.probabilities.argmax(axis=1), found.assignments)


@pytest.mark.parametrize("name", ["temi", "turtle"])
def test_two_rows_are_enough(name):
    rows = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]], np.float32)
    found = find_method(name).cluster(VectorSet(rows, ["a", "b"]), 2, 0, n_steps=3)
    assert found.assignments.shape == (2,)
