from importlib.util import find_spec

import pytest
import torch
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import BACKBONES, Backbone, build_backbone, copy_group_norm, find_backbone
from dcdc.networks.backbones import SmallBackbone
from dcdc.networks.copy_group_norm import copy_groups
from dcdc.networks.resnet import ResNet, resnet18, resnet34


def expected_parameters(in_channels: int, blocks: tuple[int, ...]) -> int:
    """Counted from the description: 3x3 stem of 64, stages of basic blocks, 1x1 shortcuts."""
    conv = lambda size, fan_in, fan_out: size * size * fan_in * fan_out  # noqa: E731
    norm = lambda channels: 2 * channels  # noqa: E731
    total = conv(3, in_channels, 64) + norm(64)
    width = 64
    for stage, n_blocks in enumerate(blocks):
        channels = (64, 128, 256, 512)[stage]
        for _ in range(n_blocks):
            total += conv(3, width, channels) + conv(3, channels, channels) + 2 * norm(channels)
            if width != channels:
                total += conv(1, width, channels) + norm(channels)
            width = channels
    return total


@pytest.mark.parametrize(("build", "blocks"), [(resnet34, (3, 4, 6, 3)), (resnet18, (2, 2, 2, 2))])
@pytest.mark.parametrize("in_channels", [1, 2, 3])
def test_resnets_have_the_parameters_that_the_description_implies(build, blocks, in_channels):
    backbone = build(in_channels)
    found = sum(parameter.numel() for parameter in backbone.parameters())
    assert found == expected_parameters(in_channels, blocks)


def test_a_32_pixel_image_shrinks_as_the_paper_describes():
    backbone, sides = resnet34(2), []
    shape_of_output = lambda *a: sides.append(tuple(a[2][0].shape[1:]))  # noqa: E731
    backbone.stem[0].register_forward_hook(lambda *a: sides.append(a[2].shape[-1]))
    backbone.stem[1].register_forward_hook(lambda *a: sides.append(a[2][0].shape[-1]))
    for last in (2, 6, 12, 15):
        backbone.stages[last].register_forward_hook(shape_of_output)
    with torch.no_grad():
        backbone.eval()(torch.rand(1, 2, 32, 32))
    assert sides == [32, 17, (64, 17, 17), (128, 9, 9), (256, 5, 5), (512, 3, 3)]


@pytest.mark.parametrize(
    ("name", "pooled", "last_stages"),
    [
        ("resnet18-unpooled", resnet18, (1, 3, 5, 7)),
        ("resnet34-unpooled", resnet34, (2, 6, 12, 15)),
    ],
)
def test_an_unpooled_backbone_keeps_the_side_to_its_first_stage(name, pooled, last_stages):
    backbone, sides = build_backbone(name, 2).eval(), []
    shape_of_output = lambda *a: sides.append(tuple(a[2][0].shape[1:]))  # noqa: E731
    backbone.stem[1].register_forward_hook(lambda *a: sides.append(a[2][0].shape[-1]))
    for last in last_stages:
        backbone.stages[last].register_forward_hook(shape_of_output)
    with torch.no_grad():
        assert backbone(torch.rand(1, 2, 16, 16)).shape == (1, 512)
    assert sides == [16, (64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]
    # the pool has no weights: both backbones take the same ones
    assert backbone.state_dict().keys() == pooled(2).state_dict().keys()


@pytest.mark.parametrize(
    ("build", "n_features"), [(resnet34, 512), (resnet18, 512), (SmallBackbone, 256)]
)
@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize("side", [8, 28, 32, 33, 96])
def test_any_side_gives_the_same_features(build, n_features, in_channels, side):
    backbone = build(in_channels).eval()
    with torch.no_grad():
        assert backbone(torch.rand(2, in_channels, side, side)).shape == (2, n_features)
    assert backbone.n_features == n_features


def test_the_largest_side_and_training_mode_work_too():
    with torch.no_grad():
        assert resnet18(3)(torch.rand(2, 3, 224, 224)).shape == (2, 512)
        assert resnet34(1)(torch.rand(2, 1, 8, 8)).shape == (2, 512)


def test_a_block_adds_its_input():
    backbone = resnet18(1)
    block = backbone.stages[0]
    nn.init.zeros_(block.norm2.weight)
    x = torch.rand(2, 64, 5, 5)
    torch.testing.assert_close(
        block((x, x)), (x, x)
    )  # x is not negative, so the last ReLU leaves it


def test_a_saved_state_keeps_its_names():
    names = list(resnet18(1).state_dict())
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    assert names[:6] == ["stem.0.weight", *(f"stem.1.{name}" for name in norm)]
    assert names[6] == "stages.0.conv1.weight"


def test_every_backbone_is_built_by_its_name_and_says_how_many_features_it_has():
    for name in set(BACKBONES.names()) - {"vectors"}:
        backbone = build_backbone(name, 3).eval()
        with torch.no_grad():
            assert backbone(torch.rand(2, 3, 32, 32)).shape == (2, backbone.n_features), name


def test_an_unknown_backbone_is_named_with_the_nearest_one_and_all_there_are():
    with pytest.raises(InputError, match="unknown backbone 'resnet43'; did you mean") as caught:
        build_backbone("resnet43", 3)
    assert "resnet34" in str(caught.value)
    assert ", ".join(BACKBONES.names()) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "./weights.safetensors", "nets/model"])
def test_a_path_in_a_backbones_place_says_how_files_are_named(name):
    with pytest.raises(InputError, match=f"write file:{name}"):
        find_backbone(name)


def test_a_registered_backbone_is_built_with_its_norms_converted(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_entries", dict(BACKBONES._entries))

    class Own(nn.Sequential):
        n_features = 5

    BACKBONES.register(
        "own",
        Backbone(
            lambda in_channels: Own(
                nn.Conv2d(in_channels, 5, 3),
                nn.BatchNorm2d(5),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
            )
        ),
    )
    assert "own" in BACKBONES.names()
    built = build_backbone("own", 2)
    assert isinstance(built[1], copy_group_norm.CopyGroups)
    assert not BACKBONES.get("own").suits_cpu
    with pytest.raises(ValueError, match="there is a backbone 'resnet18' already"):
        BACKBONES.register("resnet18", Backbone(Own))


def features_and_gradients(device: str, fused: bool) -> list[torch.Tensor]:
    """Of a small backbone in float32, and the buffers; with as many fused norms as it has."""
    made = []

    def counted(kernel):
        return lambda *given, **how: made.append(kernel) or kernel(*given, **how)

    with (
        pytest.MonkeyPatch.context() as patch,
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
    ):
        patch.setattr(copy_group_norm, "_FUSED_DEVICE", device if fused else "none")
        if fused:
            from dcdc.networks import fused_norm, fused_stem

            kernels = copy_group_norm._Kernels(
                counted(fused_norm.fused_norm),
                fused_norm.fits,
                counted(fused_stem.fused_stem),
                fused_stem.fits,
            )
            patch.setattr(copy_group_norm, "_kernels", lambda: kernels)
        torch.manual_seed(0)
        backbone = ResNet(2, (2, 1)).to(device, memory_format=torch.channels_last)
        x = torch.randn(6, 2, 8, 9).to(device, memory_format=torch.channels_last)
        with copy_groups(backbone, (2, 4)):
            features = backbone(x)
            features.backward(torch.randn(features.shape).to(device))
    norms = [layer for layer in backbone.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert len(made) == len(norms) * fused
    gradients = [parameter.grad for parameter in backbone.parameters()]
    return [features.detach(), *gradients, *backbone.buffers()]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="the kernels need triton")
def test_the_fused_backbone_learns_what_the_eager_one_does(device, call):
    found = call(features_and_gradients, device, True)
    for ours, plain in zip(found, features_and_gradients(device, False), strict=True):
        atol = 1e-4 * plain.abs().max().item()
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=atol)
