"""What is suggested for images that no preset knows."""

from dataclasses import replace

import pytest

from dcdc.phases.heads import heads_of
from dcdc.prepare import suggestions
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import batch_sizes
from dcdc.prepare.suggestions import largest_side_for, suggest


@pytest.mark.parametrize("n_images", [8, 100, 2_000, 100_000])
@pytest.mark.parametrize("n_clusters", [2, 10, 200])
@pytest.mark.parametrize(("side", "channels"), [(8, 1), (32, 3), (96, 1), (224, 3)])
@pytest.mark.parametrize("on_gpu", [True, False])
def test_suggestions_are_valid_and_fit_the_images(n_images, n_clusters, side, channels, on_gpu):
    images = {"n_images": n_images, "side": side, "channels": channels}
    config = suggest(**images, n_clusters=n_clusters, on_gpu=on_gpu)
    for batch_size in batch_sizes(config).values():
        assert 2 <= batch_size <= n_images
    assert heads_of(config).neighbours < n_images
    of_patches = not on_gpu and side > 16 and channels == 3  # however few they are
    assert (config.network.backbone == "patches") == of_patches
    assert (config.network.backbone == "small") == (side <= 16 or not (on_gpu or of_patches))
    assert (config.augment.flip > 0) == (channels == 3)


@pytest.mark.parametrize(("on_gpu", "channels"), [(True, 3), (False, 1)])
def test_the_suggested_epochs_fall_as_images_grow_in_number(on_gpu, channels):
    epochs_of = [
        [phase.epochs for phase in config.phases]
        for config in (
            suggest(n_images=n, side=32, channels=channels, n_clusters=10, on_gpu=on_gpu)
            for n in (2_000, 10_000, 100_000, 10_000_000)
        )
    ]
    for epochs in zip(*epochs_of, strict=True):
        assert list(epochs) == sorted(epochs, reverse=True)
    assert sum(epochs_of[-1]) < sum(epochs_of[0])


def test_photos_on_a_gpu_are_trained_about_as_stl10s():
    known = preset("stl10")
    found = suggest(n_images=13_000, side=known.data.size, channels=3, n_clusters=10, on_gpu=True)
    assert found.network.backbone == known.network.backbone
    assert found.phases[0].batch_size == known.phases[0].batch_size
    assert found.phase_names == known.phase_names
    for ours, theirs in zip(found.phases, known.phases, strict=True):
        assert ours.epochs == pytest.approx(theirs.epochs, rel=0.1)
    assert replace(found, phases=known.phases) == known


@pytest.mark.parametrize(("n_images", "channels"), [(1_999, 3), (60_000, 1)])
def test_few_or_grey_images_go_without_instance_contrast(n_images, channels):
    images = {"n_images": n_images, "side": 32, "channels": channels}
    assert suggest(**images, n_clusters=10, on_gpu=True).phase_names == ("heads",)


def test_a_cpu_is_given_smaller_photos(monkeypatch):
    monkeypatch.setattr(suggestions, "has_gpu", "cuda".__eq__)
    assert largest_side_for("cpu") < largest_side_for("cuda")


def test_the_suggested_batch_grows_with_the_clusters():
    sizes = [
        heads_of(
            suggest(n_images=10_000, side=32, channels=1, n_clusters=k, on_gpu=False)
        ).batch_size
        for k in (2, 10, 20, 50, 500)
    ]
    assert sizes == sorted(sizes)
    assert sizes[1] < sizes[3]
