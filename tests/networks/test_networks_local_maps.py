"""Backbones that show their maps, and the discriminator over them."""

import pytest
import torch

from dcdc.networks import build_backbone
from dcdc.networks.local_maps import LocalDiscriminator


@pytest.mark.parametrize(
    ("name", "side", "channels", "grid"),
    [("small", 8, 1, 4), ("convnet", 32, 3, 8), ("convnet", 33, 1, 8), ("convnet", 96, 3, 24)],
)
def test_features_are_made_of_maps(name, side, channels, grid):
    backbone = build_backbone(name, channels).eval()
    images = torch.rand(3, channels, side, side)
    with torch.no_grad():
        maps, features = backbone.maps(images), backbone(images)
        assert maps.shape == (3, backbone.n_maps, grid, grid)
        assert features.shape == (3, backbone.n_features)
        assert torch.equal(features, backbone.features_of(maps))
        assert not torch.allclose(features, backbone.features_of(maps.flip(1)))


def test_the_discriminator_has_a_row_for_each_place():
    discriminator = LocalDiscriminator(n_maps=6, n_features=5, n_compared=4)
    maps = torch.randn(3, 6, 2, 7)
    places = discriminator.places(maps)
    assert places.shape == (3, 14, 4)
    torch.testing.assert_close(places[1, 9], discriminator.of_maps(maps[1, :, 1, 2]))
    features = torch.randn(3, 5)
    torch.testing.assert_close(
        discriminator.whole(features), discriminator.of_features(features) / 2
    )
