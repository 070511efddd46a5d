"""timm's models with random weights: wiring, metadata, weights from a cache and a file, errors."""

import pickle
import sys

import pytest
import torch
from safetensors.torch import save, save_file

from dcdc.errors import InputError
from dcdc.networks import build_backbone, find_backbone
from dcdc.networks.pretrained import frozen_for_inference

RESNET = "test_resnet.r160_in1k"
VIT = "test_vit.r160_in1k"


@pytest.fixture(autouse=True)
def _timm(timm):
    return timm


def one_line(action) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def loaded(spec: str, in_channels: int = 3):
    module = build_backbone(spec, in_channels)
    find_backbone(spec).load_weights(module)
    return module.eval()


@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize("name", [RESNET, VIT, "mobilenetv3_small_050", "test_convnext"])
def test_features_have_the_width_that_the_module_says(name, in_channels):
    side = find_backbone(f"timm:{name}").pretrained.size
    module = build_backbone(f"timm:{name}", in_channels).eval()
    with torch.no_grad():
        assert module(torch.rand(2, in_channels, side, side)).shape == (2, module.n_features)


@pytest.mark.parametrize(
    ("name", "size", "trained_on", "uses_labels", "licence"),
    [
        ("vit_small_patch14_dinov2.lvd142m", 518, "LVD-142M", False, "Apache-2.0"),
        ("resnet50.a1_in1k", 224, "ImageNet-1k", True, "Apache-2.0"),
        ("vit_base_patch16_224.mae", 224, "ImageNet-1k", False, "CC-BY-NC-4.0"),
        ("vit_small_patch16_224.dino", 224, "ImageNet-1k", False, "Apache-2.0"),
        (
            *("vit_base_patch16_clip_224.openai", 224),
            *("image-text pairs of the web (OpenAI's WIT)", False, "Apache-2.0"),
        ),
        (
            *("convnext_tiny.fb_in22k_ft_in1k", 224),
            *("ImageNet-22k, then ImageNet-1k", True, "Apache-2.0"),
        ),
    ],
)
def test_metadata_are_timms_own(timm, name, size, trained_on, uses_labels, licence):
    told = find_backbone(f"timm:{name}").pretrained
    assert (told.size, told.licence) == (size, licence)
    assert (told.trained_on, told.uses_labels) == (trained_on, uses_labels)
    assert (told.mean, told.std) == (
        timm.get_pretrained_cfg(name).mean,
        timm.get_pretrained_cfg(name).std,
    )


@pytest.mark.parametrize("name", [RESNET, VIT])
def test_weights_in_the_hubs_cache_are_used_and_the_features_are_timms(timm, name, hub_cache):
    torch.manual_seed(1)
    whole = timm.create_model(name, pretrained=False).eval()  # with its classifier
    hub_cache(f"timm/{name}", "model.safetensors", save(whole.state_dict()))
    module = loaded(f"timm:{name}")
    images = torch.rand(2, 3, 160, 160)
    with torch.no_grad():
        expected = whole.forward_head(whole.forward_features(images), pre_logits=True)
        torch.testing.assert_close(module(images), expected, rtol=1e-4, atol=1e-5)
        frozen = frozen_for_inference(module)
        torch.testing.assert_close(frozen(images), expected, rtol=1e-3, atol=1e-4)


def test_a_file_that_is_not_what_the_hub_gave_is_refused(timm, hub_cache):
    data = save(timm.create_model(RESNET, pretrained=False).state_dict())
    hub_cache(f"timm/{RESNET}", "model.safetensors", data[:-1] + b"x", blob="0" * 64)
    assert "its checksum differs from the hub's" in one_line(lambda: loaded(f"timm:{RESNET}"))


def test_weights_of_a_local_file(timm, tmp_path):
    path = tmp_path / "own.safetensors"
    whole = timm.create_model("test_resnet", pretrained=False, num_classes=7).eval()
    save_file(whole.state_dict(), path)
    spec = f"timm:test_resnet@{path}"
    told = find_backbone(spec).pretrained
    assert (told.licence, told.trained_on, told.uses_labels) == ("unknown", "unknown", None)
    named = find_backbone(f"timm:{RESNET}@{path}").pretrained
    assert (named.trained_on, named.uses_labels) == ("ImageNet-1k", True)
    module = loaded(spec)
    for name, tensor in module.trunk.state_dict().items():
        assert torch.equal(tensor, whole.state_dict()[name]), name


def test_weights_that_do_not_fit_are_told_by_the_first(timm, tmp_path):
    path = tmp_path / "other.safetensors"
    save_file(timm.create_model("test_vit", pretrained=False).state_dict(), path)
    assert "do not fit: it has no conv1.0.weight (16 x 3 x 3 x 3)" in one_line(
        lambda: loaded(f"timm:test_resnet@{path}")
    )
    state = timm.create_model("test_resnet", pretrained=False).state_dict()
    first = next(iter(state))
    save_file({**state, first: torch.zeros(1, 2)}, path)
    told = one_line(lambda: loaded(f"timm:test_resnet@{path}"))
    assert f"its {first} is 1 x 2 where the backbone has" in told
    save_file({**state, "layer9.weight": torch.zeros(1)}, path)
    told = one_line(lambda: loaded(f"timm:test_resnet@{path}"))
    assert "its layer9.weight has no place in the backbone" in told


class Spy:
    """Would leave a trace, were its pickle opened."""

    opened = False

    def __reduce__(self):
        return setattr, (Spy, "opened", True)


@pytest.mark.parametrize("name", ["own.pth", "own.bin", "own.safetensors"])
def test_a_pickle_is_refused_whatever_its_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Spy()))
    told = one_line(lambda: loaded(f"timm:test_resnet@{path}"))
    assert "refused" in told or "is not a whole safetensors file" in told
    assert not Spy.opened


def test_a_file_that_is_cut_off_is_one_line(timm, tmp_path):
    path = tmp_path / "own.safetensors"
    save_file(timm.create_model("test_resnet", pretrained=False).state_dict(), path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "not a whole safetensors file" in one_line(lambda: loaded(f"timm:test_resnet@{path}"))
    gone = tmp_path / "gone.safetensors"
    assert f"there is no file {gone}" in one_line(lambda: find_backbone(f"timm:test_vit@{gone}"))


@pytest.mark.usefixtures("hub_cache")
def test_without_a_network_it_says_which_file_to_place_where(tmp_path):
    told = one_line(lambda: loaded(f"timm:{RESNET}"))
    assert f"needs model.safetensors of the hub's timm/{RESNET}" in told
    assert str(tmp_path / "hub") in told
    assert f"timm:{RESNET}@PATH/model.safetensors" in told
    assert "HF_HOME" in told


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("timm:resnet188", "timm has no model 'resnet188'; did you mean 'resnet18"),
        ("timm:resnet18.a1_in2k", "no weights 'a1_in2k' of resnet18; did you mean 'a1_in1k'?"),
        ("timm:", "names nothing after timm:"),
        ("tim:resnet18", "unknown scheme of backbones 'tim'; did you mean 'timm'?"),
        ("resnet-18", "unknown backbone 'resnet-18'; did you mean 'resnet18'?"),
    ],
)
def test_names_that_do_not_exist(spec, told):
    assert told in one_line(lambda: find_backbone(spec))


def test_weights_that_exist_as_a_pickle_alone(timm):
    name = next(
        name for name in timm.list_pretrained() if not timm.get_pretrained_cfg(name).hf_hub_id
    )
    settings = find_backbone(f"timm:{name}")
    assert "as a pickle alone" in one_line(lambda: settings.load_weights(torch.nn.Identity()))


def test_timm_or_its_torchvision_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    told = one_line(lambda: find_backbone("timm:resnet18"))
    assert told == ("the backbone timm:resnet18 needs the package timm: pip install 'dcdc[timm]'")


def test_another_size_is_taken_with_the_same_weights(timm, hub_cache):
    whole = timm.create_model(VIT, pretrained=False)
    hub_cache(f"timm/{VIT}", "model.safetensors", save(whole.state_dict()))
    assert find_backbone(f"timm:{VIT}:96").pretrained.size == 96
    module = loaded(f"timm:{VIT}:96")
    assert module.trunk.pos_embed.shape[1] < whole.pos_embed.shape[1]  # fewer patches
    assert torch.equal(module.trunk.blocks[0].mlp.fc1.weight, whole.blocks[0].mlp.fc1.weight)
    with torch.no_grad():
        assert module(torch.rand(2, 3, 96, 96)).shape == (2, module.n_features)
        other = build_backbone(f"timm:{RESNET}:96", 3).eval()
        assert other(torch.rand(2, 3, 96, 96)).shape == (2, other.n_features)
    assert "a side in pixels" in one_line(lambda: find_backbone(f"timm:{VIT}:small"))
