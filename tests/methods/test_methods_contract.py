"""What every method of the table keeps to; a new line in the registry is tested here by itself."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from dcdc.data import Data, ImageSet, VectorSet, from_arrays
from dcdc.errors import InputError, TrainingError
from dcdc.methods import METHODS, Clustering, Context, find_method
from dcdc.methods.registry import check_answer

SMALL = {"dcdc": {"changes": ("network.over_clusters=6", "heads.n_repeats=1")}}
"""What makes a method quick beside QUICK."""
QUICK = {
    **{"epochs": 1, "n_steps": 2, "n_refining_steps": 2, "sub_heads": 2},
    **{"clustering_epochs": 1, "self_label_epochs": 1},
}
"""For every method that has such a setting."""
EVERY = pytest.mark.parametrize("name", METHODS.names())


@pytest.fixture
def images(name, tiny_set) -> Data:
    """Their pixels as feature vectors, where a method takes nothing else."""
    if ImageSet in find_method(name).kinds():
        tiny_set.images.setflags(write=False)
        return tiny_set
    pixels = tiny_set.images.reshape(48, -1).astype(np.float32)
    pixels.setflags(write=False)
    return VectorSet(pixels, tiny_set.names, tiny_set.targets, tiny_set.class_names)


def settings_of(name: str) -> dict:
    taken = find_method(name).settings()
    return {key: value for key, value in QUICK.items() if key in taken} | SMALL.get(name, {})


def answer(name: str, images: Data, n_clusters: int = 3, seed: int = 0):
    return find_method(name).cluster(images, n_clusters, seed, **settings_of(name))


@pytest.fixture(scope="module")
def kept() -> dict:
    return {}


@pytest.fixture
def first(name, images, kept):
    """A method's answer, found once for all tests."""
    if name not in kept:
        kept[name] = answer(name, images)
    return kept[name]


@EVERY
def test_every_image_gets_a_cluster_in_range(first):
    assert first.assignments.shape == (48,)
    assert first.assignments.dtype == np.int64
    assert set(first.assignments.tolist()) <= {0, 1, 2}
    if first.probabilities is not None:
        assert first.probabilities.shape == (48, 3)
        np.testing.assert_allclose(first.probabilities.sum(axis=1), 1, atol=1e-4)
        assert np.array_equal(first.probabilities.argmax(axis=1), first.assignments)
    if first.features is not None:
        assert first.features.ndim == 2
        assert len(first.features) == 48


@EVERY
def test_one_seed_one_answer_whatever_the_targets_say(name, images, first):
    shuffled = np.random.default_rng(1).permutation(images.targets)
    again = answer(name, replace(images, targets=shuffled))
    assert np.array_equal(again.assignments, first.assignments)
    blind = answer(name, replace(images, targets=None, class_names=()))
    assert np.array_equal(blind.assignments, first.assignments)


@EVERY
@pytest.mark.parametrize("n_clusters", [1, 49])
def test_one_cluster_or_more_than_images_are_refused(name, images, n_clusters):
    with pytest.raises(InputError, match=f"^{n_clusters} clusters for 48 images: give n_clusters"):
        answer(name, images, n_clusters)


@EVERY
def test_images_that_are_all_the_same_are_refused(name):
    flat = from_arrays(np.full((30, 8, 8, 1), 7, np.uint8))
    with pytest.raises(InputError, match="all 30 images are the same"):
        answer(name, flat, 2)


@EVERY
def test_settings_are_keyword_arguments_with_defaults(name):
    parameters = list(inspect.signature(find_method(name).load()).parameters.values())
    assert [each.name for each in parameters[:3]] == ["image_set", "n_clusters", "seed"]
    assert parameters[3].annotation is Context
    for each in parameters[4:]:
        assert each.kind is inspect.Parameter.KEYWORD_ONLY
        assert each.default is not inspect.Parameter.empty


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (np.arange(48) % 4, "answered clusters 0 to 3 of 3"),
        (np.full(48, -1), "answered clusters -1 to -1"),
        (np.zeros(47, np.int64), r"answered \(47,\) of int64 for 48 images"),
        (np.zeros(48), "of float64"),
    ],
)
def test_an_answer_that_is_none_is_refused(answers, told):
    with pytest.raises(TrainingError, match=told):
        check_answer(Clustering(answers), 48, 3, "a method")
