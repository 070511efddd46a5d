"""torchvision's models by a stand-in with its functions: it has no build for every torch."""

import enum
import hashlib
import socket
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import build_backbone, find_backbone
from dcdc.networks.pretrained import torchvision_models


class Net(nn.Module):
    """As a torchvision model ends: pooled features, noise, one linear layer."""

    def __init__(self, head: str = "fc") -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        heads = {
            "fc": lambda: nn.Linear(8, 10),
            "classifier": lambda: nn.Sequential(
                nn.Linear(8, 12), nn.Hardswish(), nn.Dropout(0.9), nn.Linear(12, 10)
            ),
        }
        self.head_name = head
        setattr(self, head, heads[head]())

    def pooled(self, x):
        return self.bn1(self.conv1(x)).relu().mean((2, 3))

    def forward(self, x):
        return getattr(self, self.head_name)(self.pooled(x))


@pytest.fixture
def models(tmp_path, monkeypatch):
    """torchvision.models with two models; the weight file of `resnet18` lies in torch's cache."""
    torch.manual_seed(0)
    trained = Net().eval()
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    torch.save(trained.state_dict(), folder / "weights.pth")
    digest = hashlib.sha256((folder / "weights.pth").read_bytes()).hexdigest()
    file = (folder / "weights.pth").rename(folder / f"resnet18-{digest[:8]}.pth")
    preset = SimpleNamespace(crop_size=[32], mean=[0.4, 0.5, 0.6], std=[0.2, 0.3, 0.4])

    class Weights(enum.Enum):
        IMAGENET1K_V1 = "v1"
        IMAGENET1K_SWAG_E2E_V1 = "swag"
        DEFAULT = "v1"

        url = property(lambda _: f"https://nowhere.invalid/models/{file.name}")
        meta = property(
            lambda self: {"license": "cc-by-nc-4.0"} if self.value == "swag" else {"num_params": 1}
        )

        def transforms(self):
            return preset

    module, found = ModuleType("torchvision"), ModuleType("torchvision.models")
    heads = {"resnet18": "fc", "mobilenet_v3_small": "classifier"}
    found.list_models = lambda module=None: list(heads)  # noqa: ARG005
    found.get_model = lambda name, weights: Net(heads[name]) if weights is None else None
    found.get_model_weights = lambda name: Weights  # noqa: ARG005
    module.models = found
    monkeypatch.setitem(sys.modules, "torchvision", module)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    return SimpleNamespace(trained=trained, file=file)


def one_line(action) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def loaded(spec: str):
    module = build_backbone(spec, 3)
    find_backbone(spec).load_weights(module)
    return module.eval()


def test_features_are_what_the_classifier_reads(models):
    module = loaded("torchvision:resnet18")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(module(images), models.trained.pooled(images))
    assert module.n_features == 8


@pytest.mark.usefixtures("models")
def test_a_classifier_of_several_layers_loses_its_last_one_and_its_noise():
    module = build_backbone("torchvision:mobilenet_v3_small", 1).train()
    images = torch.rand(4, 1, 32, 32)
    assert module.n_features == 12
    torch.testing.assert_close(module(images), module(images))
    assert module(images).shape == (4, 12)


@pytest.mark.usefixtures("models")
def test_metadata_are_those_of_the_weights():
    told = find_backbone("torchvision:resnet18").pretrained
    assert (told.size, told.mean, told.std) == (32, (0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    assert (told.licence, told.trained_on, told.uses_labels) == (
        *("BSD-3-Clause", "ImageNet-1k", True),
    )
    told = find_backbone("torchvision:resnet18.IMAGENET1K_SWAG_E2E_V1").pretrained
    assert (told.licence, told.trained_on) == (
        *("CC-BY-NC-4.0", "Instagram hashtags, then ImageNet-1k"),
    )


def test_weights_of_a_local_file(models, tmp_path):
    path = tmp_path / "own.safetensors"
    save_file(models.trained.state_dict(), path)
    module = loaded(f"torchvision:resnet18@{path}")
    assert torch.equal(module.trunk.conv1.weight, models.trained.conv1.weight)
    told = find_backbone(f"torchvision:resnet18@{path}").pretrained
    assert (told.licence, told.trained_on, told.uses_labels) == ("unknown", "unknown", None)
    save_file({"conv1.weight": torch.zeros(8, 3, 3, 3)}, path)
    assert "do not fit: it has no bn1.weight" in one_line(
        lambda: loaded(f"torchvision:resnet18@{path}")
    )


def test_a_file_with_another_checksum_is_never_opened(models, monkeypatch):
    models.file.write_bytes(models.file.read_bytes() + b"x")
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    assert "has not the checksum that its name says" in one_line(
        lambda: loaded("torchvision:resnet18")
    )


def test_without_a_network_it_says_which_file_to_place_where(models):
    models.file.unlink()
    told = one_line(lambda: loaded("torchvision:resnet18"))
    assert f"needs {models.file.name}, which is not in {models.file.parent}" in told
    assert not list(models.file.parent.iterdir())


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(torchvision_models, "SECONDS", 0.2)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as server:  # nobody ever accepts
        url = f"http://127.0.0.1:{server.getsockname()[1]}/net-01234567.pth"
        with pytest.raises(InputError, match=r"cannot be fetched.*place the file there"):
            torchvision_models._fetched("torchvision:net", url)
    assert socket.getdefaulttimeout() is None
    assert not list((tmp_path / "checkpoints").iterdir())


@pytest.mark.usefixtures("models")
def test_names_that_do_not_exist():
    told = one_line(lambda: find_backbone("torchvision:resnet81"))
    assert told == "torchvision has no model 'resnet81'; did you mean 'resnet18'?"
    told = one_line(lambda: find_backbone("torchvision:resnet18.IMAGENET1K_V7"))
    assert "no weights 'IMAGENET1K_V7' of resnet18; did you mean 'IMAGENET1K_V1'?" in told


def test_torchvision_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    told = one_line(lambda: find_backbone("torchvision:resnet18"))
    assert told.endswith("needs the package torchvision: pip install 'dcdc[torchvision]'")
