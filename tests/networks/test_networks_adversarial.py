import pytest
import torch
from torch import nn

from dcdc.networks.adversarial import Discriminator, Generator, strided_sides


def test_every_layer_halves_its_maps_down_to_a_small_grid():
    assert strided_sides(64) == (64, 32, 16, 8, 4)
    assert strided_sides(32) == (32, 16, 8, 4)
    assert strided_sides(96) == (96, 48, 24, 12, 6)
    assert strided_sides(13) == (13, 6, 3)
    assert strided_sides(8) == (8, 4, 2)


@pytest.mark.parametrize(("channels", "side"), [(1, 8), (3, 32), (3, 13), (1, 28), (3, 9), (1, 4)])
def test_what_is_made_can_be_told_apart_whatever_the_size(channels, side):
    made = Generator(5, channels, side, 4)(torch.randn(3, 5))
    assert made.shape == (3, channels, side, side)
    assert 0 <= made.min() <= made.max() <= 1
    assert Discriminator(channels, side, 4)(made).shape == (3,)


@pytest.mark.parametrize("network", [Generator(100, 3, 32, 64), Discriminator(3, 32, 64)])
def test_they_are_as_their_paper_defines_them(network):
    torch.manual_seed(0)
    layers = [
        each for each in network.modules() if isinstance(each, nn.Conv2d | nn.ConvTranspose2d)
    ]
    assert len(layers) == 3
    for layer in layers:
        assert (layer.kernel_size, layer.stride) == ((4, 4), (2, 2))
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert abs(layer.weight.mean().item()) < 1e-3
        assert (layer.bias == 0).all()
    for norm in network.norms:
        assert norm.weight.mean().item() == pytest.approx(1, abs=0.01)
        assert 0 < norm.weight.std() < 0.04
    # A norm after each layer of the generator but its last, of the discriminator but its first.
    assert len(network.norms) == (3 if isinstance(network, Generator) else 2)


def test_features_are_of_every_layer_on_a_grid():
    network = Discriminator(3, 32, 4)
    maps = network.maps(torch.rand(2, 3, 32, 32))
    assert [tuple(m.shape[1:]) for m in maps] == [(4, 16, 16), (8, 8, 8), (16, 4, 4)]
    features = network.features(torch.rand(2, 3, 32, 32))
    assert features.shape == (2, (4 + 8 + 16) * 16)
    assert Discriminator(1, 8, 4).features(torch.rand(2, 1, 8, 8)).shape == (2, 4 * 16 + 8 * 4)


def test_the_greatest_answer_of_a_field_is_its_feature():
    network = Discriminator(1, 8, 4).eval()
    images = torch.rand(1, 1, 8, 8)
    first = network.maps(images)[0]
    torch.testing.assert_close(
        network.features(images, grid=2)[0, 0], first[0, 0, :2, :2].max(), rtol=0, atol=0
    )
