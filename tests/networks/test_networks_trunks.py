import pytest
import torch
from torch import nn

from dcdc.networks.resnet import resnet18, resnet34
from dcdc.networks.small import SmallTrunk


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
    trunk = build(in_channels)
    found = sum(parameter.numel() for parameter in trunk.parameters())
    assert found == expected_parameters(in_channels, blocks)


def test_a_32_pixel_image_shrinks_as_the_paper_describes():
    trunk, sides = resnet34(2), []
    trunk.stem[0].register_forward_hook(lambda *a: sides.append(a[2].shape[-1]))
    trunk.stem.register_forward_hook(lambda *a: sides.append(a[2].shape[-1]))
    for last in (2, 6, 12, 15):
        trunk.stages[last].register_forward_hook(lambda *a: sides.append(tuple(a[2][0].shape[1:])))
    with torch.no_grad():
        trunk.eval()(torch.rand(1, 2, 32, 32))
    assert sides == [32, 17, (64, 17, 17), (128, 9, 9), (256, 5, 5), (512, 3, 3)]


@pytest.mark.parametrize(
    ("build", "n_features"), [(resnet34, 512), (resnet18, 512), (SmallTrunk, 256)]
)
@pytest.mark.parametrize("in_channels", [1, 3])
@pytest.mark.parametrize("side", [8, 28, 32, 33, 96])
def test_any_side_gives_the_same_features(build, n_features, in_channels, side):
    trunk = build(in_channels).eval()
    with torch.no_grad():
        assert trunk(torch.rand(2, in_channels, side, side)).shape == (2, n_features)
    assert trunk.n_features == n_features


def test_the_largest_side_and_training_mode_work_too():
    with torch.no_grad():
        assert resnet18(3)(torch.rand(2, 3, 224, 224)).shape == (2, 512)
        assert resnet34(1)(torch.rand(2, 1, 8, 8)).shape == (2, 512)


def test_a_block_adds_its_input():
    trunk = resnet18(1)
    block = trunk.stages[0]
    nn.init.zeros_(block.norm2.weight)
    x = torch.rand(2, 64, 5, 5)
    torch.testing.assert_close(
        block((x, x)), (x, x)
    )  # x is not negative, so the last ReLU leaves it
