"""The methods that learn their features, on images that any of them can tell apart.

Most can by the weights they start with: that they learn is asked in `test_methods_learning.py`.
"""

import numpy as np
import pytest
import torch

from dcdc.data import from_arrays
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.methods import METHODS, Context, find_method
from dcdc.metrics import cluster_accuracy

SHORT = {
    "ae": {"n_steps": 40},
    "dae": {"n_steps": 40},
    "dcgan": {"n_steps": 20},
    "decnn": {"n_steps": 5},
    "vae": {"n_steps": 60},
    "jule": {"epochs": 2},
    "dec": {"n_steps": 40, "n_refining_steps": 10},
    "adc": {"n_steps": 60},
    "dac": {"epochs": 4},
    "ddc": {"epochs": 4},
    "dccm": {"epochs": 4},
    "iic": {"epochs": 6, "sub_heads": 2},
    "pica": {"epochs": 6},
    "scan": {"epochs": 6, "clustering_epochs": 6, "self_label_epochs": 2},
    "cc": {"epochs": 6},
}


def run(name, images, seed=0, context=None, **changes):
    return find_method(name).cluster(images, 3, seed, context, **(SHORT[name] | changes))


@pytest.mark.parametrize("name", SHORT)
def test_plain_kinds_are_found(name, tiny_set):
    found = run(name, tiny_set)
    assert found.assignments.shape == (48,)
    assert found.assignments.dtype == np.int64
    assert cluster_accuracy(tiny_set.targets, found.assignments) > 0.9
    assert found.features.shape[0] == 48
    assert np.isfinite(found.features).all()
    assert isinstance(found.network, torch.nn.Module)


@pytest.mark.parametrize("name", SHORT)
def test_one_seed_one_answer_whatever_was_drawn_before(name, tiny_set):
    short = dict.fromkeys(SHORT[name], 2)
    first = run(name, tiny_set, **short)
    torch.manual_seed(99)
    np.random.seed(99)
    again, other = run(name, tiny_set, **short), run(name, tiny_set, seed=1, **short)
    assert np.array_equal(first.assignments, again.assignments)
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)


@pytest.fixture(scope="module")
def photos():
    """36 of 24 pixels in colours that say nothing: stripes across, stripes down, a board."""
    draws = np.random.default_rng(0)
    down, across = np.mgrid[:24, :24] // 3
    shapes = np.stack([down % 2, across % 2, (down + across) % 2] * 12)
    colours = draws.uniform(40, 120, (36, 2, 1, 1, 3)) * [[[[[1.0]]], [[[2.0]]]]]
    images = np.where(shapes[..., None], colours[:, 0], colours[:, 1])
    return from_arrays(images.astype(np.uint8), targets=np.arange(36) % 3)


@pytest.mark.parametrize(
    "name", ["ae", "dae", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vae", "dec"))]
)
def test_photos_are_told_apart_by_what_they_show(name, photos):
    found = run(name, photos, batch_size=36, width=4, n_steps=100)
    assert cluster_accuracy(photos.targets, found.assignments) > 0.9


@pytest.mark.parametrize("name", ["dae", "vae"])
def test_a_photo_and_its_mirror_image_have_the_same_features(name, photos):
    both = np.concatenate([photos.images, photos.images[:, :, ::-1]])
    found = run(name, from_arrays(both), n_steps=2, width=4)
    np.testing.assert_allclose(found.features[:36], found.features[36:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ae", "dae", "vae", "dec"])
def test_a_code_of_nothing_is_refused(name, tiny_set):
    with pytest.raises(InputError, match="n_code = 0 must be above 0"):
        run(name, tiny_set, n_code=0)


@pytest.mark.parametrize("name", ["dec", "dac", "adc", "ddc", "dccm", "iic", "pica", "scan", "cc"])
def test_soft_answers_are_shares_and_agree_with_the_hard_ones(name, tiny_set):
    found = run(name, tiny_set, **dict.fromkeys(SHORT[name], 2))
    assert found.probabilities.shape == (48, 3)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(found.probabilities.argmax(axis=1), found.assignments)


@pytest.mark.parametrize("name", SHORT)
def test_targets_are_never_looked_at(name, tiny_set):
    short = dict.fromkeys(SHORT[name], 2)
    blind = from_arrays(tiny_set.images)
    assert np.array_equal(run(name, blind, **short).features, run(name, tiny_set, **short).features)


@pytest.mark.parametrize("name", SHORT)
def test_colour_of_odd_sides(name):
    images = np.random.default_rng(0).integers(0, 256, (12, 13, 13, 3)).astype(np.uint8)
    found = find_method(name).cluster(
        from_arrays(images), 3, 0, batch_size=6, **dict.fromkeys(SHORT[name], 1)
    )
    assert found.assignments.shape == (12,)


@pytest.mark.parametrize("name", SHORT)
def test_what_no_method_can_bear_is_refused(name, tiny_set):
    method = find_method(name).cluster
    with pytest.raises(InputError, match="49 clusters for 48 images"):
        method(tiny_set, 49, 0)
    with pytest.raises(InputError, match="all 5 images are the same"):
        method(from_arrays(np.full((5, 8, 8, 1), 7, np.uint8)), 2, 0)


@pytest.mark.parametrize("name", SHORT)
def test_those_who_watch_hear_of_epochs(name, tiny_set):
    class Listener(SilentObserver):
        def __init__(self):
            self.epochs, self.steps, self.records = 0, 0, []

        def on_start(self, *, epoch, epochs, steps_left):  # noqa: ARG002
            self.epochs += epochs

        def on_step(self, terms, n_images):  # noqa: ARG002
            self.steps += 1

        def on_epoch(self, record):
            self.records.append(record)

    listener = Listener()
    run(name, tiny_set, context=Context(observer=listener), **dict.fromkeys(SHORT[name], 2))
    assert listener.epochs == len(listener.records) >= 1
    assert listener.steps >= 1
    assert all({"epoch", "loss", "seconds"} <= record.keys() for record in listener.records)


def test_the_table_keeps_its_published_order():
    published = (
        *("k-means", "sc", "ac", "nmf", "ae", "dae", "dcgan", "decnn", "vae", "jule"),
        *("dec", "dac", "adc", "ddc", "dccm", "iic", "pica", "dcdc"),
    )
    added = ("untrained", "scan", "cc", "gmm", "temi", "turtle")
    assert [name for name in METHODS.names() if name not in added] == list(published)
