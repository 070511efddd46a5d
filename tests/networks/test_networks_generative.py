import pytest
import torch
from torch.nn import functional as F

from dcdc.networks.generative import (
    Autoencoder,
    UntrainedMaps,
    VariationalAutoencoder,
    halvings,
)

STATISTICS = {1: ([0.5], [0.5]), 3: ([0.5] * 3, [0.2] * 3)}


def build(kind, channels, side, n_code=7, **settings):
    mean, std = STATISTICS[channels]
    return kind(channels, side, n_code, mean=mean, std=std, width=4, **settings)


def test_maps_are_halved_down_to_a_small_grid():
    assert halvings(32) == (32, 16, 8, 4)
    assert halvings(8) == (8, 4)
    assert halvings(96) == (96, 48, 24, 12, 6, 3)
    assert halvings(13) == (13, 7, 4)


@pytest.mark.parametrize("side", [8, 9, 13, 16, 28, 32, 96])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_any_side_come_back_in_their_shape(side, channels):
    network = build(Autoencoder, channels, side)
    images = torch.rand(2, channels, side, side)
    codes = network.encode(images)
    assert codes.shape == (2, 7)
    assert network.decode(codes).shape == images.shape == network.wanted(images).shape
    assert network.features(images).shape == (2, network.encoder.code.in_features)


@pytest.mark.parametrize("side", [17, 32, 96])
def test_pooled_features_do_not_know_where(side):
    network = build(Autoencoder, 3, side, pooled=True).eval()
    images = torch.zeros(1, 3, side, side)
    images[:, :, 4:6, 4:6] = 1
    step = 2 ** (len(halvings(side)) - 1)  # as far apart as the last maps' places
    moved = images.roll(step, 3)
    assert network.decode(network.encode(images)).shape == images.shape
    inner = network.features(torch.cat([images, moved]))
    assert inner.shape == (2, network.encoder.code.in_features)
    if side > 3 * step:  # else the border is everywhere
        torch.testing.assert_close(inner[0], inner[1], rtol=0.1, atol=1e-2)


def test_what_is_wanted_is_what_the_normalised_image_becomes():
    network = build(Autoencoder, 1, 8, evened=torch.nn.Hardtanh())
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(network.wanted(images), network.normalise(images).clamp(-1, 1))


def test_a_variational_code_is_a_mean_and_a_variance_of_each_number():
    network = build(VariationalAutoencoder, 1, 8).eval()
    images = torch.rand(3, 1, 8, 8)
    mean, log_variance = network.distribution(images)
    assert mean.shape == log_variance.shape == (3, 7)
    assert torch.equal(network.encode(images), mean)
    assert network.decode(mean).shape == images.shape


def test_the_code_alone_decides_what_is_made():
    network = build(Autoencoder, 1, 8).eval()
    first, second = torch.rand(2, 1, 1, 8, 8)
    code = network.encode(first)
    assert torch.equal(network.decode(code), network.decode(code.clone()))
    assert not torch.allclose(network.decode(code), network.decode(network.encode(second)))


def test_every_layer_is_seen_field_by_field():
    torch.manual_seed(0)
    network = UntrainedMaps(1, 8, mean=[0.5], std=[0.25], width=3, evened=False)
    images = torch.rand(2, 1, 8, 8)
    found = network.features(images)
    assert found.shape == (2, (3 + 6) * 4)
    first = F.conv2d((images - 0.5) / 0.25, network.layers[0].weight, padding=1).relu()
    field = first[:, 1, :4, 4:].mean(dim=(1, 2)).sqrt()  # the second map, above, on the right
    torch.testing.assert_close(found[:, 1 * 4 + 1], field)


def test_even_contrast_takes_the_light_away():
    torch.manual_seed(0)
    network = UntrainedMaps(3, 16, mean=[0.5] * 3, std=[0.25] * 3, width=2, evened=True)
    images = torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(
        network.features(images + 0.3), network.features(images), rtol=1e-3, atol=1e-3
    )
