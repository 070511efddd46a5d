import pytest
import torch

from dcdc.networks.adversarial import Discriminator, Generator


@pytest.mark.parametrize(("channels", "side"), [(1, 8), (3, 32), (3, 13), (1, 28)])
def test_what_is_made_can_be_told_apart_whatever_the_size(channels, side):
    made = Generator(5, channels, side, 4)(torch.randn(3, 5))
    assert made.shape == (3, channels, side, side)
    assert 0 <= made.min() <= made.max() <= 1
    assert Discriminator(channels, side, 4)(made).shape == (3,)


def test_features_are_of_every_layer_on_a_grid():
    network = Discriminator(3, 32, 4)
    features = network.features(torch.rand(2, 3, 32, 32), grid=2)
    assert features.shape == (2, (4 + 8 + 16 + 32) * 4)
    maps = network.maps(torch.rand(2, 3, 32, 32))
    assert [tuple(m.shape[1:]) for m in maps] == [(4, 32, 32), (8, 16, 16), (16, 8, 8), (32, 4, 4)]


def test_the_greatest_answer_of_a_field_is_its_feature():
    network = Discriminator(1, 8, 4).eval()
    images = torch.rand(1, 1, 8, 8)
    first = network.maps(images)[0]
    torch.testing.assert_close(
        network.features(images, grid=2)[0, 0], first[0, 0, :4, :4].max(), rtol=0, atol=0
    )
