"""IIC and PICA as configs of DCDC's engine."""

import json

import numpy as np
import pytest

from dcdc.data import from_arrays, load_digits
from dcdc.errors import InputError
from dcdc.methods import Context, by_run, find_method
from dcdc.methods.by_run import at_least_seven_steps, start_config
from dcdc.metrics import cluster_accuracy
from dcdc.presets import preset


def config_of(method, images, n_clusters=10, device="cpu", **settings):
    """What the method hands to `run`."""
    given = []

    def caught(config, *_, **__):
        given.append(config)
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_run, "run", caught)
        with pytest.raises(InterruptedError):
            find_method(method).cluster(images, n_clusters, 3, Context(device), **settings)
    return given[0]


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(by_run, "has_gpu", lambda _: True)
    monkeypatch.setattr("dcdc.config_for_images.has_gpu", lambda _: True)


def colour(side, n_images=600, channels=3):
    random = np.random.default_rng(0)
    return from_arrays(random.integers(0, 256, (n_images, side, side, channels)).astype(np.uint8))


def test_iic_is_another_loss_over_several_heads():
    config = config_of("iic", load_digits())
    assert (config.loss.kind, config.network.sub_heads, config.train.seed) == ("iic", 5, 3)
    assert (config.network.trunk, config.train.head_start) == ("small", "random")
    assert config_of("iic", load_digits(), epochs=3, sub_heads=2).train.epochs == 3


def test_pica_is_the_class_view_at_temperature_one_and_twice_the_balance():
    loss = config_of("pica", load_digits()).loss
    assert (loss.kind, loss.temperature) == ("dcdc", 1)
    assert (loss.sample_weight, loss.class_weight, loss.balance_weight) == (0, 1, 2)
    assert config_of("pica", load_digits()).train.batch_size == 256
    assert config_of("pica", load_digits(), batch_size=30).train.batch_size == 30


@pytest.mark.parametrize("method", ["iic", "pica"])
@pytest.mark.usefixtures("on_gpu")
def test_on_a_gpu_they_have_the_paper_s_network_and_their_own_rate(method):
    config, paper = config_of(method, colour(32)), preset("cifar10-paper")
    assert (config.network.trunk, config.network.sobel) == ("resnet34", True)
    assert config.network.over_clusters == 70
    assert config.network.mean != paper.network.mean  # its own images'
    assert config.augment == paper.augment
    assert (config.train.epochs, config.train.heads) == (200, "alternate")
    assert (config.train.learning_rate, config.train.batch_size) == (1e-4, 256)
    assert config_of(method, colour(32, 100)).train.batch_size <= 100


@pytest.mark.usefixtures("on_gpu")
def test_large_images_are_cropped_as_the_paper_crops_them_and_grey_ones_not_recoloured():
    assert start_config(colour(96, 60), 10, "cuda", {}).augment.resize_to == 112
    assert start_config(colour(64, 60), 10, "cuda", {}).augment.resize_to == 80
    grey = start_config(colour(32, 60, channels=1), 10, "cuda", {}).augment
    assert (grey.hue, grey.flip, grey.rotation > 0, grey.resize_to) == (0, 0, True, 40)


def test_a_batch_leaves_steps_to_an_epoch():
    assert at_least_seven_steps(256, load_digits()) == 256
    assert at_least_seven_steps(256, colour(8, 70)) == 10
    assert at_least_seven_steps(256, colour(8, 3)) == 2


@pytest.mark.parametrize("method", ["iic", "pica"])
def test_a_finished_run_is_not_trained_again_nor_taken_for_another(method, tiny_set, tmp_path):
    cluster, context = find_method(method).cluster, Context(folder=tmp_path / "run")
    settings = {"epochs": 2, "batch_size": 16}
    first = cluster(tiny_set, 3, 0, context, **settings)
    history = (tmp_path / "run" / "history.jsonl").read_text()
    again = cluster(tiny_set, 3, 0, context, **settings)
    assert np.array_equal(first.probabilities, again.probabilities)
    assert (tmp_path / "run" / "history.jsonl").read_text() == history
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert cluster_accuracy(tiny_set.targets, first.assignments) == metrics["scores"]["acc"]
    with pytest.raises(InputError, match="cannot resume"):
        cluster(tiny_set, 3, 1, context, **settings)
