"""Any nn.Module as a backbone: what it tells of itself, what it returns, how it is found again."""

import pickle
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import Backbone, Pretrained, build_backbone, find_backbone, register_module
from dcdc.networks.pretrained.module_card import MEAN, STD

IMAGES = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def net(out=6, channels=3, seed=0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(channels, out, 3), nn.BatchNorm2d(out), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )  # fmt: skip


def small(module: nn.Module, size: int = 16) -> nn.Module:
    module.input_size = size
    return module


def test_a_module_makes_the_features_that_it_made_before():
    module = small(net()).eval()
    spec = register_module(module)
    built = build_backbone(spec, 3).eval()
    assert built.n_features == 6
    assert torch.equal(built(IMAGES), module(IMAGES))
    grey = IMAGES[:, :1]
    assert torch.equal(build_backbone(spec, 1).eval()(grey), module(grey.repeat(1, 3, 1, 1)))


def test_the_given_module_stays_as_it_is():
    module = small(net()).requires_grad_(False)
    built = build_backbone(register_module(module), 3)
    assert module.training
    assert type(module[1]) is nn.BatchNorm2d
    assert all(not weight.requires_grad for weight in module.parameters())
    assert all(weight.requires_grad for weight in built.parameters())  # it may be fine-tuned
    with torch.no_grad():
        next(built.parameters()).zero_()
    assert next(module.parameters()).abs().sum() > 0


def test_equal_weights_have_equal_names_and_other_ones_others():
    names = [register_module(small(net(seed=seed))) for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("module:Sequential-")
    assert register_module(small(net(), 24)) != names[0]


def test_a_name_of_ones_own_stands_for_the_newest():
    assert register_module(small(net()), name="mine") == "module:mine"
    register_module(small(net(out=9)), name="mine")
    assert build_backbone("module:mine", 3).n_features == 9


def test_what_uses_equal_weights_otherwise_has_another_fingerprint():
    class Doubled(nn.Sequential):
        def forward(self, x):
            return super().forward(x) ** 2

    plain, other = small(net()), small(Doubled(*net()))
    built = [build_backbone(register_module(each), 3) for each in (plain, other, plain)]
    assert built[0].fingerprint != built[1].fingerprint
    assert built[0].fingerprint == built[2].fingerprint


class Returning(nn.Module):
    input_size = 8

    def __init__(self, output) -> None:
        super().__init__()
        self.output = output

    def forward(self, x):
        return self.output(x)


@pytest.mark.parametrize(
    ("output", "n_features"),
    [
        (lambda x: x, 3),  # a map
        (lambda x: x.flatten(2), 64),  # tokens
        (lambda x: SimpleNamespace(pooler_output=None, last_hidden_state=x.flatten(2)), 64),
        (lambda x: SimpleNamespace(pooler_output=x.mean(2).flatten(1)), 24),
        (lambda x: x.flatten(1), 192),
    ],
)
def test_maps_and_tokens_are_pooled(output, n_features):
    built = build_backbone(register_module(Returning(output), name="pooled"), 3)
    assert built.n_features == n_features
    assert built(torch.rand(5, 3, 8, 8)).shape == (5, n_features)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Returning(lambda x: {"features": x}), "the backbone Returning returns a dict: it must"),
        (Returning(lambda x: x.flatten()), "returns 1 axes, not features B x D"),
        (Returning(lambda x: x.flatten(1)[:1]), r"makes \(1, 192\) of two images"),
        (nn.Linear(9, 4), "the backbone Linear fails on images of 224 pixels: mat1 and mat2"),
    ],
)
def test_what_makes_no_features_is_refused_in_one_line(module, message):
    with pytest.raises(InputError, match=message) as caught:
        register_module(module)
    assert "\n" not in str(caught.value)


def told(module: nn.Module) -> Pretrained:
    found = find_backbone(register_module(module)).pretrained
    assert found is not None
    return found


def test_a_module_tells_of_itself_by_attributes():
    module = small(net())
    module.mean, module.std = (0.5, 0.5, 0.5), torch.full((1, 3, 1, 1), 0.25)
    module.licence, module.trained_on, module.uses_labels = "MIT", "my photos", False
    assert told(module) == Pretrained(
        16, (0.5,) * 3, (0.25,) * 3, "MIT", "my photos", False, "Sequential"
    )
    bare = told(small(net()))
    assert (bare.mean, bare.std, bare.licence) == (MEAN, STD, "unknown")
    assert (bare.trained_on, bare.uses_labels) == ("unknown", None)
    assert told(small(net(channels=1))).mean == (pytest.approx(0.449),)


def test_a_module_tells_of_itself_as_timm_and_transformers_do():
    module = net()
    module.pretrained_cfg = {
        "input_size": (3, 24, 24), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5),
        "tag": "lvd142m", "license": "apache-2.0",
    }  # fmt: skip
    found = told(module)
    assert (found.size, found.mean, found.licence) == (24, (0.5, 0.5, 0.5), "Apache-2.0")
    assert (found.trained_on, found.uses_labels) == ("LVD-142M", False)
    module = net()
    module.config = SimpleNamespace(image_size=32)
    assert told(module).size == 32


def test_metadata_can_be_given_beside_the_module():
    card = Pretrained(16, (0.1,) * 3, (0.2,) * 3, "MIT", "my photos", True, "My net")
    assert find_backbone(register_module(net(), pretrained=card)).pretrained == card
    module = net()
    module.pretrained = card
    assert told(module) == card
    with pytest.raises(InputError, match="give a mean and a std above 0 for each channel"):
        module = small(net())
        module.std = (0.0, 1.0, 1.0)
        register_module(module)


def test_other_channels_are_refused():
    with pytest.raises(InputError, match=r"reads images of 1 channel\(s\), not of 3"):
        build_backbone(register_module(small(net(channels=1))), 3)


def test_a_backbone_of_ones_own_is_known_by_its_builder():
    def my_net(in_channels):
        module = net(channels=in_channels)
        module.n_features = 6
        return module

    spec = register_module(Backbone(my_net))
    assert spec.startswith("module:my_net-")
    assert build_backbone(spec, 3)(IMAGES).shape == (3, 6)


def test_one_that_nobody_registered_says_what_to_call():
    with pytest.raises(InputError, match=r"register_module\(module, name='Gone-1'\) with it first"):
        find_backbone("module:Gone-1")


def test_what_is_registered_travels_between_processes():
    backbone = find_backbone(register_module(small(net())))
    other = pickle.loads(pickle.dumps(backbone))
    assert torch.equal(other.build(3).eval()(IMAGES), backbone.build(3).eval()(IMAGES))
