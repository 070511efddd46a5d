"""The presets against the paper's tables, spelled out once more."""

from dataclasses import replace

import pytest

from dcdc.errors import InputError
from dcdc.phases.heads import Heads
from dcdc.prepare.presets import PRESETS, preset

# name: clusters, temperature, batch, over-clustering, side that images are resized to
PAPER = {
    "cifar10-paper": (10, 0.5, 50, 70, 40),
    "cifar100-20-paper": (20, 0.3, 200, 70, 40),
    "stl10-paper": (10, 0.3, 100, 70, 112),
    "imagenet-10-paper": (10, 0.5, 50, 70, 112),
    "imagenet-dogs-paper": (15, 0.5, 30, 70, 112),
    "tiny-imagenet-paper": (200, 0.5, 300, 700, 80),
}


def test_every_benchmark_of_the_paper_has_its_row():
    assert {name for name in PRESETS if name.endswith("-paper")} == set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_rows_are_the_papers(name):
    config = preset(name)
    (heads,) = config.phases
    assert isinstance(heads, Heads)
    found = (
        config.n_clusters,
        heads.temperature,
        heads.batch_size,
        config.network.over_clusters,
        config.augment.resize_to,
    )
    assert found == PAPER[name]
    augment = config.augment
    assert (heads.epochs, heads.n_repeats, heads.learning_rate) == (200, 3, 1e-3)
    assert (heads.schedule, heads.order) == ("constant", "alternate")
    assert (heads.initialisation, heads.loss, heads.neighbours) == ("random", "dcdc", 0)
    assert (heads.sample_weight, heads.class_weight, heads.balance_weight) == (1, 1, 0)
    assert (config.network.backbone, config.network.sobel) == ("resnet34", True)
    assert augment.crop_scale == (0.2, 1.0)
    jitter = (augment.brightness, augment.contrast, augment.saturation, augment.hue)
    assert jitter == (0.4, 0.4, 0.4, 0.4)
    assert (augment.grey, augment.flip) == (0.2, 0.5)


@pytest.mark.parametrize("name", ["cifar10", "cifar100-20", "stl10"])
def test_our_recipe_shares_the_papers_images_and_clusters(name):
    ours, theirs = preset(name), preset(f"{name}-paper")
    assert (ours.n_clusters, ours.data) == (theirs.n_clusters, theirs.data)
    assert (ours.network.mean, ours.network.std) == (theirs.network.mean, theirs.network.std)


@pytest.mark.parametrize("name", ["cifar10", "cifar10-fast", "cifar100-20"])
def test_cifars_have_features_a_head_on_them_and_self_labels_over_whole_images(name):
    ours = preset(name)
    assert ours.phase_names == ("discriminate", "frozen_heads", "self_label")
    assert ours.augment.resize_to == 0


def test_the_fast_preset_is_cifar10s_with_fewer_epochs():
    fast, ours = preset("cifar10-fast"), preset("cifar10")
    assert replace(fast, phases=ours.phases) == ours
    assert fast.epochs < ours.epochs / 2


def test_stl10_has_the_same_over_features_by_contrast():
    """Of 13,000 images cluster discrimination learns nothing."""
    ours = preset("stl10")
    assert ours.phase_names == ("contrast", "frozen_heads", "self_label")
    assert ours.phases[2] == preset("cifar100-20").phases[2]
    assert (ours.augment.resize_to, ours.network.over_clusters) == (0, 0)


def test_digits_are_never_flipped():
    assert preset("digits").augment.flip == 0
    assert preset("digits").augment.rotation < 45


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(InputError, match="unknown preset 'cifar10-papr'; did you mean 'cifar10-p"):
        preset("cifar10-papr")
