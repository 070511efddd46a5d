"""IIC and PICA as configs of DCDC's engine."""

import json

import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.methods import Context, by_run, find_method
from dcdc.methods.by_run import at_least_seven_steps, start_config
from dcdc.metrics import cluster_accuracy
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(by_run, "has_gpu", lambda _: True)
    monkeypatch.setattr("dcdc.prepare.suggestions.has_gpu", lambda _: True)


def test_iic_is_another_loss_over_several_heads(config_of):
    config = config_of("iic", load_digits())
    heads = heads_of(config)
    assert (heads.loss, config.network.sub_heads, config.train.seed) == ("iic", 5, 3)
    assert (config.network.backbone, heads.initialisation) == ("small", "random")
    assert heads_of(config_of("iic", load_digits(), epochs=3, sub_heads=2)).epochs == 3


def test_pica_is_the_class_view_at_temperature_one_and_twice_the_balance(config_of):
    heads = heads_of(config_of("pica", load_digits()))
    assert (heads.loss, heads.temperature) == ("dcdc", 1)
    assert (heads.sample_weight, heads.class_weight, heads.balance_weight) == (0, 1, 2)
    assert heads.batch_size == 256
    assert heads_of(config_of("pica", load_digits(), batch_size=30)).batch_size == 30


@pytest.mark.parametrize("method", ["iic", "pica"])
@pytest.mark.usefixtures("on_gpu")
def test_on_a_gpu_they_have_the_paper_s_network_and_their_own_rate(method, config_of, colour):
    config, paper = config_of(method, colour(32)), preset("cifar10-paper")
    heads = heads_of(config)
    assert (config.network.backbone, config.network.sobel) == ("resnet34", True)
    assert config.network.over_clusters == 70
    assert config.network.mean != paper.network.mean  # its own images'
    assert config.augment == paper.augment
    assert (heads.epochs, heads.order) == (200, "alternate")
    assert (heads.learning_rate, heads.batch_size) == (1e-4, 256)
    assert heads_of(config_of(method, colour(32, 100))).batch_size <= 100


@pytest.mark.usefixtures("on_gpu")
def test_large_images_are_cropped_as_the_paper_crops_them_and_grey_ones_not_recoloured(colour):
    assert start_config(colour(96, 60), 10, "cuda").augment.resize_to == 112
    assert start_config(colour(64, 60), 10, "cuda").augment.resize_to == 80
    grey = start_config(colour(32, 60, channels=1), 10, "cuda").augment
    assert (grey.hue, grey.flip, grey.rotation > 0, grey.resize_to) == (0, 0, True, 40)


def test_a_batch_leaves_steps_to_an_epoch(colour):
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
