from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from dcdc.networks.sparse_coding import SparseCoder


def coder(channels=1, sparsity=0.1, n_iterations=10, n_filters=6, side=3):
    torch.manual_seed(0)
    return SparseCoder(channels, n_filters, side, sparsity=sparsity, n_iterations=n_iterations)


def cost(network, x, codes):
    """What the codes are to make small, image by image."""
    error = (x - network.made(codes)).square().flatten(1).sum(1) / 2
    return error + network.sparsity * codes.abs().flatten(1).sum(1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [8, 13])
def test_shapes_for_any_size(channels, side):
    network = coder(channels)
    images = torch.rand(2, channels, side, side)
    codes = network.codes(network.contrast(images))
    assert codes.shape == (2, 6, side, side)
    assert network.made(codes).shape == images.shape
    assert network.features(images, grid=2).shape == (2, 2 * 6 * 4)


def test_every_iteration_lowers_the_cost():
    x = torch.randn(3, 1, 8, 8)
    costs = []
    for n_iterations in (0, 1, 3, 10, 100):
        network = coder(n_iterations=n_iterations)
        costs.append(cost(network, x, network.codes(x)))
    for before, after in pairwise(costs):
        assert (after < before).all()


def test_the_codes_found_are_the_best_there_are():
    """At the least cost the error's pull is no more than a unit's cost, and as much where it is."""
    network = coder(n_iterations=1500, n_filters=3)
    x = torch.randn(2, 1, 8, 8)
    codes = network.codes(x)
    pull = F.conv2d(x - network.made(codes), network.filters, padding=1)
    assert pull.abs().max() <= network.sparsity + 5e-3
    used = codes.abs() > 1e-2
    assert used.any()
    torch.testing.assert_close(pull[used], network.sparsity * codes[used].sign(), atol=5e-3, rtol=0)


def test_a_higher_cost_leaves_fewer_entries_and_a_great_one_none():
    x = torch.randn(2, 1, 8, 8)
    used = [
        (coder(sparsity=sparsity).codes(x) != 0).float().mean() for sparsity in (0.01, 0.5, 100)
    ]
    assert used[0] > used[1] > used[2] == 0


def test_filters_are_kept_at_length_one():
    network = coder(3)
    with torch.no_grad():
        network.filters.mul_(7)
    network.shorten()
    torch.testing.assert_close(network.filters.flatten(1).norm(dim=1), torch.ones(6))


def test_light_and_contrast_do_not_matter():
    network = coder(sparsity=0.05)
    images = 0.3 + 0.4 * torch.rand(2, 1, 8, 8)
    brighter = images + 0.2
    torch.testing.assert_close(network.contrast(brighter), network.contrast(images))
    stronger = (images - images.mean()) * 1.4 + images.mean()
    assert (network.contrast(stronger) - network.contrast(images)).abs().max() < 0.5
