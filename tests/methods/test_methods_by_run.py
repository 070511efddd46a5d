"""IIC, PICA, SCAN and CC as configs of DCDC's engine."""

import json

import numpy as np
import pytest

from dcdc.data import load_digits
from dcdc.errors import InputError
from dcdc.methods import Context, by_run, find_method
from dcdc.methods.by_run import at_least_seven_steps, start_config
from dcdc.metrics import cluster_accuracy
from dcdc.phases.contrast import Contrast
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


def test_scan_is_contrast_then_neighbours_then_self_labels(config_of):
    config = config_of("scan", load_digits(), epochs=7, clustering_epochs=5, self_label_epochs=3)
    contrast, heads, self_label = config.phases
    assert [phase.kind for phase in config.phases] == ["contrast", "heads", "self_label"]
    assert (contrast.epochs, heads.epochs, self_label.epochs) == (7, 5, 3)
    assert (heads.loss, heads.neighbours, heads.balance_weight) == ("scan", 20, 5)
    assert (heads.copies, self_label.copies) == ("perturbed", "perturbed")
    assert (config.network.backbone, config.network.over_clusters) == ("small", 0)
    others = config_of("scan", load_digits(), n_neighbours=3, entropy_weight=2.0, threshold=0.5)
    assert (heads_of(others).neighbours, heads_of(others).balance_weight) == (3, 2)
    assert others.phases[2].threshold == 0.5


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"n_neighbours": 48}, "48 images do not have 48 neighbours each"),
        ({"clustering_epochs": 0}, "must be at least 1"),
        ({"threshold": 1.0}, "must be from 0 to below 1"),
        ({"entropy_weight": -1.0}, "must be at least 0"),
    ],
)
def test_scan_refuses_what_cannot_be(settings, told, tiny_set):
    with pytest.raises(InputError, match=told):
        find_method("scan").cluster(tiny_set, 3, 0, **settings)


@pytest.mark.usefixtures("on_gpu")
def test_scan_on_a_gpu_is_as_its_paper_has_it_on_our_features(config_of, colour):
    config = config_of("scan", colour(32, 8000))
    contrast, heads, self_label = config.phases
    assert (contrast.batch_size, contrast.temperature) == (512, Contrast().temperature)
    assert (config.network.backbone, config.network.over_clusters) == ("resnet18-unpooled", 0)
    assert (heads.epochs, heads.batch_size, heads.neighbours) == (50, 128, 20)
    assert (self_label.epochs, self_label.batch_size, self_label.threshold) == (200, 1000, 0.99)
    for phase in (heads, self_label):
        assert (phase.copies, phase.learning_rate, phase.schedule) == ("strong", 1e-4, "constant")
    assert config.augment.resize_to == 0


def test_cc_is_contrast_of_images_then_of_clusters_too(config_of):
    config = config_of("cc", load_digits(), epochs=7, cluster_temperature=0.5, batch_size=100)
    contrast, both = config.phases
    assert [phase.kind for phase in config.phases] == ["contrast", "contrastive_clustering"]
    assert (both.epochs, both.initialisation) == (7, "spherical-k-means")
    assert (both.temperature, both.cluster_temperature, both.balance_weight) == (0.5, 0.5, 1)
    assert (contrast.batch_size, both.batch_size) == (100, 100)
    assert (config.network.backbone, config.network.over_clusters) == ("small", 0)


@pytest.mark.usefixtures("on_gpu")
def test_cc_on_a_gpu_is_as_its_paper_has_it(config_of, colour):
    config = config_of("cc", colour(32, 8000))
    (both,) = config.phases
    assert (both.epochs, both.batch_size, both.learning_rate) == (1000, 256, 3e-4)
    assert (both.temperature, both.cluster_temperature, both.projection) == (0.5, 1.0, 128)
    assert (both.initialisation, both.schedule) == ("random", "constant")
    assert (config.network.backbone, config.network.over_clusters) == ("resnet18-unpooled", 0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"temperature": 0.0}, "must be above 0"),
        ({"batch_size": 49}, "a batch of 49 is larger than the set of 48 images"),
        ({"learning_rate": -1.0}, "must be above 0"),
    ],
)
def test_cc_refuses_what_cannot_be(settings, told, tiny_set):
    with pytest.raises(InputError, match=told):
        find_method("cc").cluster(tiny_set, 3, 0, **settings)


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


@pytest.mark.parametrize("method", ["iic", "pica", "scan", "cc"])
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


def test_a_method_answers_for_every_image(tiny_set, tmp_path):
    context = Context("cpu", folder=tmp_path / "run")
    with pytest.raises(InputError, match="outliers = True is not for a comparison"):
        find_method("dcdc").cluster(tiny_set, 3, 0, context, changes=("outliers=true",))
    assert not (tmp_path / "run").exists()
