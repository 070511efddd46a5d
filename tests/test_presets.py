"""The presets against the paper's tables, spelled out once more."""

import pytest

from dcdc.errors import InputError
from dcdc.presets import PRESETS, explained, largest_side, length, preset, suggest

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
    found = (
        config.n_clusters,
        config.loss.temperature,
        config.train.batch_size,
        config.network.over_clusters,
        config.augment.resize_to,
    )
    assert found == PAPER[name]
    train, loss, augment = config.train, config.loss, config.augment
    assert (train.epochs, train.n_repeats, train.learning_rate) == (200, 3, 1e-3)
    assert (train.schedule, train.heads, train.head_start) == ("constant", "alternate", "random")
    assert (loss.sample_weight, loss.class_weight, loss.balance_weight) == (1, 1, 0)
    assert not loss.spare_siblings
    assert (config.network.trunk, config.network.sobel) == ("resnet34", True)
    assert augment.crop_scale == (0.2, 1.0)
    assert augment.crop_ratio == pytest.approx((0.75, 4 / 3))
    jitter = (augment.brightness, augment.contrast, augment.saturation, augment.hue)
    assert jitter == (0.4, 0.4, 0.4, 0.4)
    assert (augment.grey, augment.flip) == (0.2, 0.5)


@pytest.mark.parametrize("name", ["cifar10", "cifar100-20", "stl10"])
def test_our_recipe_shares_the_papers_images_and_clusters(name):
    ours, theirs = preset(name), preset(f"{name}-paper")
    assert ours.n_clusters == theirs.n_clusters
    assert (ours.data, ours.augment.resize_to) == (theirs.data, theirs.augment.resize_to)
    assert (ours.network.mean, ours.network.std) == (theirs.network.mean, theirs.network.std)
    assert ours.loss.sample_weight == ours.loss.class_weight == 1


def test_the_length_names_every_phase():
    assert length(preset("cifar10-paper")) == "200 epochs"
    assert length(preset("cifar10")) == (
        "200 epochs of instance contrast, 20 epochs of both heads, 15 of self-labels"
    )


def test_digits_are_never_flipped():
    assert preset("digits").augment.flip == 0
    assert preset("digits").augment.rotation < 45


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(InputError, match="unknown preset 'cifar10-papr'; did you mean 'cifar10-p"):
        preset("cifar10-papr")


def _batches(config):
    phases = (config.instance, config.train, config.self_label)
    return [phase.batch_size or config.train.batch_size for phase in phases if phase.epochs]


@pytest.mark.parametrize("n_images", [8, 100, 2_000, 100_000])
@pytest.mark.parametrize("n_clusters", [2, 10, 200])
@pytest.mark.parametrize(("side", "channels"), [(8, 1), (32, 3), (96, 1), (224, 3)])
@pytest.mark.parametrize("on_gpu", [True, False])
def test_suggestions_are_valid_and_fit_the_images(n_images, n_clusters, side, channels, on_gpu):
    images = {"n_images": n_images, "side": side, "channels": channels}
    config = suggest(**images, n_clusters=n_clusters, on_gpu=on_gpu)
    for batch_size in _batches(config):
        assert 2 <= batch_size <= n_images
    assert config.train.neighbours < n_images
    of_patches = not on_gpu and side > 16 and channels == 3 and n_images >= 1_000
    assert (config.network.trunk == "patches") == of_patches
    assert (config.network.trunk == "small") == (side <= 16 or not (on_gpu or of_patches))
    assert (config.augment.flip > 0) == (channels == 3)


@pytest.mark.parametrize(("on_gpu", "channels"), [(True, 3), (False, 1)])
def test_the_suggested_epochs_fall_as_images_grow_in_number(on_gpu, channels):
    phases = [
        (config.instance.epochs, config.train.epochs, config.self_label.epochs)
        for config in (
            suggest(n_images=n, side=32, channels=channels, n_clusters=10, on_gpu=on_gpu)
            for n in (2_000, 10_000, 100_000, 10_000_000)
        )
    ]
    for epochs in zip(*phases, strict=True):
        assert list(epochs) == sorted(epochs, reverse=True)
    assert sum(phases[-1]) < sum(phases[0])


@pytest.mark.parametrize(("name", "n_images"), [("cifar10", 60_000), ("stl10", 13_000)])
def test_photos_on_a_gpu_are_trained_about_as_our_presets_train_theirs(name, n_images):
    known = preset(name)
    found = suggest(n_images=n_images, side=known.data.size, channels=3, n_clusters=10, on_gpu=True)
    assert found.network.trunk == known.network.trunk
    assert found.instance.batch_size == known.instance.batch_size
    for of in (lambda c: c.instance, lambda c: c.train, lambda c: c.self_label):
        assert of(found).epochs == pytest.approx(of(known).epochs, rel=0.1)
    assert (found.train.heads, found.train.head_start) == ("joint", "spherical-k-means")


@pytest.mark.parametrize(("n_images", "channels"), [(1_999, 3), (60_000, 1)])
def test_few_or_grey_images_go_without_instance_contrast(n_images, channels):
    images = {"n_images": n_images, "side": 32, "channels": channels}
    assert not suggest(**images, n_clusters=10, on_gpu=True).instance.epochs


def test_a_cpu_is_given_smaller_photos():
    assert largest_side(on_gpu=False) < largest_side(on_gpu=True)


def test_what_was_chosen_is_explained_with_what_changes_it():
    config = suggest(n_images=500, side=32, channels=3, n_clusters=12, on_gpu=False)
    lines = dict(explained(config))
    assert lines[f"batch of {config.train.batch_size} images"] == "--batch-size"
    (perturbed,) = (text for text in lines if text.startswith("perturbed"))
    assert perturbed == "perturbed by crop_scale, brightness, contrast, saturation, hue, grey, flip"
    grey = explained(suggest(n_images=500, side=32, channels=1, n_clusters=12, on_gpu=False))
    assert grey[-1][0] == "perturbed by rotation, shift, scale, shear, noise"
    assert lines["3 perturbed copies of each"] == "--set train.n_repeats="
    slow = dict(explained(suggest(n_images=5_000, side=32, channels=3, n_clusters=9, on_gpu=False)))
    assert "features first: a dictionary of patches, then K-Means, then both heads" in slow
    assert "one perturbed copy of each" in slow
    photos = dict(
        explained(suggest(n_images=13_000, side=96, channels=3, n_clusters=10, on_gpu=True))
    )
    first = "features first: 492 epochs of instance contrast, then K-Means, then both heads"
    assert photos[first] == "--set instance.epochs="
    assert photos["self-labels at the end: 15 epochs"] == "--set self_label.epochs="


def test_the_suggested_batch_grows_with_the_clusters():
    sizes = [
        suggest(n_images=10_000, side=32, channels=1, n_clusters=k, on_gpu=False).train.batch_size
        for k in (2, 10, 20, 50, 500)
    ]
    assert sizes == sorted(sizes)
    assert sizes[1] < sizes[3]
