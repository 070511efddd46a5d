"""Dictionary and first features from images: once, before the first step of a run."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.data import from_arrays
from dcdc.data.vector_store import open_vector_store
from dcdc.engine import patch_dictionary
from dcdc.engine.observer import SilentObserver
from dcdc.engine.patch_dictionary import find_middle, initialise_backbone
from dcdc.networks import ClusteringNetwork, build_backbone
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import perturbed_copy, resolve
from dcdc.run import run
from dcdc.run_folder import RunFolder


@pytest.fixture
def config(tiny_config):
    values = {"network.backbone": "patches", "heads.epochs": 2, "heads.initialisation": "k-means"}
    return with_values(tiny_config, values)


@pytest.fixture(scope="module")
def few_patches():
    """In the dictionary and for it: the same thing in a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dcdc.engine.patch_dictionary._N_SAMPLED", 4_000)
        for module in ("networks.patches", "engine.patch_dictionary"):
            patch.setattr(f"dcdc.{module}.N_PATCHES", 60)
        yield


pytestmark = pytest.mark.usefixtures("few_patches")


def built(config, image_set):
    return build_training(resolve(config, image_set), image_set, SilentObserver(), None)


def steadiness(network, copy, image_set) -> float:
    """How far images lie apart, by how far copies of one image do."""
    draws = torch.Generator().manual_seed(5)
    with torch.no_grad():
        pixels = torch.tensor(image_set.images).permute(0, 3, 1, 2)
        copies = torch.stack([network.features(copy(pixels, draws)) for _ in range(6)])
    means = copies.mean(dim=0)
    return float(means.var(dim=0).sum() / (copies - means).var(dim=0).mean(dim=0).sum())


def test_features_are_steadier_than_those_of_a_dense_layer_at_random(config, tiny_set):
    training = built(config, tiny_set)
    seen = training.model.network, perturbed_copy(config, n_repeats=1), tiny_set
    before = steadiness(*seen)
    initialise_backbone(training.trainer.context)
    assert steadiness(*seen) > 2 * before


def test_who_watches_hears_of_every_image(config, tiny_set, monkeypatch):
    class Watching(SilentObserver):
        @contextmanager
        def counting(self, what):
            yield lambda done, total: heard.append((what, done, total))

    heard = []
    monkeypatch.setattr("dcdc.engine.patch_dictionary._CHUNK", 20)
    training = build_training(resolve(config, tiny_set), tiny_set, Watching(), None)
    initialise_backbone(training.trainer.context)
    assert heard == [("learning patches", done, 48) for done in (20, 40, 48)]


def test_copies_of_few_images_are_trusted_less(config, tiny_set, monkeypatch):
    """Directions that seemed steady on the copies that were seen are not on others."""

    def found():
        training = built(config, few)
        initialise_backbone(training.trainer.context)
        return steadiness(training.model.network, perturbed_copy(config, n_repeats=1), few)

    random = np.random.default_rng(0)
    noise = random.integers(0, 60, tiny_set.images.shape)
    few = from_arrays((tiny_set.images // 2 + noise).astype(np.uint8), targets=tiny_set.targets)
    of_few = found()
    monkeypatch.setattr("dcdc.engine.patch_dictionary._FEW", 0)
    assert of_few > 1.05 * found()


def test_one_seed_one_dictionary_and_another_seed_another(config, tiny_set):
    def dictionary(seed):
        training = built(with_values(config, {"train.seed": seed}), tiny_set)
        initialise_backbone(training.trainer.context)
        return training.model.network.backbone.state_dict()

    first, again, other = dictionary(0), dictionary(0), dictionary(1)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["filters"], other["filters"])


def test_fewer_images_than_features_leave_the_rest_at_nothing(config, tiny_set):
    few = from_arrays(tiny_set.images[:20])
    training = built(with_values(config, {"heads.batch_size": 8, "n_clusters": 3}), few)
    initialise_backbone(training.trainer.context)
    weight = training.model.network.backbone.dense.weight
    assert weight[:19].abs().sum(dim=1).min() > 0
    assert not weight[19:].any()
    assert weight.isfinite().all()


def test_images_of_one_colour_are_borne(config, tiny_set):
    plain = from_arrays(np.full_like(tiny_set.images, 7))
    training = built(with_values(config, {"n_clusters": 3}), plain)
    initialise_backbone(training.trainer.context)
    assert all(tensor.isfinite().all() for tensor in training.model.network.state_dict().values())


def test_a_run_finds_the_tiny_sets_kinds_and_a_resumed_one_finds_nothing_anew(
    config, tiny_set, tmp_path, monkeypatch
):
    straight = run(config, tiny_set)
    assert straight.history[-1]["acc"] > 0.9
    folder = RunFolder.create(tmp_path / "run")
    run(with_values(config, {"heads.epochs": 1}), tiny_set, folder=folder)

    def never(*_):
        raise AssertionError("a second dictionary")

    monkeypatch.setattr("dcdc.engine.patch_dictionary.initialise_patches", never)
    longer = run(config, tiny_set, folder=folder, resume=True)
    assert np.array_equal(longer.assigned.probabilities, straight.assigned.probabilities)
    given = run(config, tiny_set, weights=longer.model.network.state_dict())
    backbone = longer.model.network.backbone
    assert torch.equal(given.model.network.backbone.filters, backbone.filters)


def test_the_middle_is_the_mean_of_all_rows_however_they_are_cut(monkeypatch):
    vectors = np.random.default_rng(0).normal(3, 1, (25, 6)).astype(np.float32)
    network = ClusteringNetwork(
        build_backbone("vectors", 6),
        in_channels=6,
        n_clusters=2,
        mean=(0.0,),
        std=(1.0,),
        takes_vectors=True,
    )
    for chunk in (4, 25, 100):
        monkeypatch.setattr(patch_dictionary, "_ROWS_AT_ONCE", chunk)
        network.directions.middle.zero_()
        find_middle(network, open_vector_store(vectors, "cpu"))
        torch.testing.assert_close(
            network.directions.middle, torch.from_numpy(vectors.mean(axis=0)), rtol=1e-6, atol=1e-6
        )
