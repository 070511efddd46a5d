from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from dcdc.networks.sparse_coding import SparseCoder, WholeContrast


def coder(channels=1, sparsity=0.1, n_iterations=10, n_filters=6, side=3):
    torch.manual_seed(0)
    return SparseCoder(channels, n_filters, side, sparsity=sparsity, n_iterations=n_iterations)


def slow_objective(network, x, codes) -> list[float]:
    """What codes are to make small, image by image: half the squared error, and their cost."""
    filters, reach = network.filters.detach(), network.padding
    found = []
    for image, maps in zip(x, codes, strict=True):
        made = torch.zeros(image.shape[0], *(side + 2 * reach for side in image.shape[1:]))
        for number, entries in enumerate(maps):
            for row, column in entries.nonzero().tolist():
                laid = entries[row, column] * filters[number]
                made[:, row : row + 2 * reach + 1, column : column + 2 * reach + 1] += laid
        made = made[:, reach:-reach, reach:-reach]
        error = (image - made).square().sum() / 2
        found.append(float(error + network.sparsity * maps.abs().sum()))
    return found


def test_the_objective_is_that_of_filters_laid_where_the_maps_say():
    network, x = coder(2), torch.randn(2, 2, 8, 8)
    codes = network.codes(x)
    expected = torch.tensor(slow_objective(network, x, codes))
    torch.testing.assert_close(network.objective(x, codes).detach(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [8, 13])
def test_shapes_for_any_size(channels, side):
    network = coder(channels)
    images = torch.rand(2, channels, side, side)
    codes = network.codes(network.evened(images))
    assert codes.shape == (2, 6, side, side)
    assert network.made(codes).shape == images.shape
    assert network.features(images, grid=2).shape == (2, 2 * 6 * 4)


def test_more_iterations_lower_the_objective():
    x = torch.randn(3, 1, 8, 8)
    found = []
    for n_iterations in (0, 1, 3, 10, 100):
        network = coder(n_iterations=n_iterations)
        found.append(network.objective(x, network.codes(x)))
    for before, after in pairwise(found):
        assert (after < before).all()


def test_fifty_iterations_with_momentum_do_what_hundreds_without_do_not():
    """Plain shrinkage (ISTA), spelled out, from the same start."""
    x = WholeContrast()(torch.rand(4, 1, 16, 16))
    network = coder(sparsity=0.3, n_iterations=50, n_filters=16, side=5)
    codes = network.codes(x)
    rate = 1 / network._steepest(16)
    plain = torch.zeros_like(codes)
    with torch.no_grad():
        for _ in range(300):
            pull = F.conv2d(x - network.made(plain), network.filters, padding=2)
            moved = plain + rate * pull
            plain = moved.sign() * (moved.abs() - rate * network.sparsity).relu()
    assert (network.objective(x, codes) < network.objective(x, plain)).all()
    assert (codes != 0).float().mean() < 0.15


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


def test_filters_are_kept_at_mean_zero_and_length_one():
    network = coder(3)
    with torch.no_grad():
        network.filters.mul_(7).add_(torch.randn(6, 3, 1, 1))
    network.constrain()
    torch.testing.assert_close(network.filters.flatten(1).norm(dim=1), torch.ones(6))
    torch.testing.assert_close(
        network.filters.mean(dim=(2, 3)), torch.zeros(6, 3), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_no_step_is_too_long(channels):
    """The largest curvature, by the matrix of filters at every place."""
    network = coder(channels, n_filters=4)
    places = torch.eye(4 * 36).view(-1, 4, 6, 6)
    laid = network.made(places).flatten(1)
    largest = torch.linalg.matrix_norm(laid, 2) ** 2
    assert largest <= network._steepest(6) <= 1.5 * largest


def test_light_and_contrast_do_not_matter():
    contrast = WholeContrast()
    images = 0.3 + 0.4 * torch.rand(2, 1, 8, 8)
    brighter = images + 0.2
    torch.testing.assert_close(contrast(brighter), contrast(images))
    stronger = (images - images.mean()) * 1.4 + images.mean()
    assert (contrast(stronger) - contrast(images)).abs().max() < 0.5
