"""A patch backbone's answers against loops over patches, and what its features are."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from dcdc.networks.patches import (
    FEWEST,
    N_PATCHES,
    PADDING,
    SIDE,
    STRIDE,
    THRESHOLD,
    PatchBackbone,
    even_patches,
)


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def with_dictionary(channels):
    """The backbone, and the dictionary that it was given."""
    torch.manual_seed(0)
    backbone = PatchBackbone(channels)
    n = channels * SIDE**2
    given = drawn(N_PATCHES, n), drawn(n, n, seed=1) / n**0.5, drawn(n, seed=2)
    backbone.take_dictionary(*given)
    return backbone, given


def slow_answers(image, whitened, whitening, middle):
    """Patch by patch in float64: even it, whiten it, compare it, and add it to its quarter."""
    padded = F.pad(image.double(), (PADDING,) * 4)
    height, width = (side // STRIDE for side in image.shape[1:])
    units = F.normalize(whitened.double(), dim=1)
    sums = torch.zeros(N_PATCHES, 2, 2, dtype=torch.float64)
    counts = torch.zeros(2, 2, dtype=torch.float64)
    for down, across in product(range(height), range(width)):
        top, left = down * STRIDE, across * STRIDE
        patch = padded[:, top : top + SIDE, left : left + SIDE].flatten()
        away = patch - patch.mean()
        even = away / (away.pow(2).mean() + FEWEST).sqrt()
        answer = units @ (whitening.double() @ (even - middle.double()))
        quarter = 2 * down // height, 2 * across // width
        sums[:, quarter[0], quarter[1]] += (answer - THRESHOLD).clamp(min=0)
        counts[quarter] += 1
    return (sums / counts).flatten().sqrt()


@pytest.mark.parametrize(("channels", "side"), [(3, (8, 12)), (1, (16, 8)), (2, (12, 12))])
def test_answers_are_those_of_whitened_patches_one_by_one(channels, side):
    backbone, (whitened, whitening, middle) = with_dictionary(channels)
    symmetric = (whitening + whitening.T) / 2
    backbone.take_dictionary(whitened, symmetric, middle)
    images = drawn(2, channels, *side) * 2 + 1
    found = backbone.answers(images)
    expected = [slow_answers(image, whitened, symmetric, middle) for image in images]
    torch.testing.assert_close(found.double(), torch.stack(expected), rtol=1e-3, atol=2e-3)
    assert 0.05 < (found > 0).float().mean() < 1


def test_patches_are_even_and_a_plain_one_is_nothing():
    image = drawn(1, 3, 8, 8) * 5 + 9
    patches = even_patches(image)
    assert patches.shape == (1, 16, 108)
    assert patches.mean(dim=2).abs().max() < 1e-5
    inside = patches[0, 5]  # touches no border
    assert inside.pow(2).mean() == pytest.approx(1, abs=1e-3)
    assert even_patches(torch.full((1, 1, 24, 24), 7.0))[0, 6 * 12 + 6].abs().max() == 0


@pytest.mark.parametrize("side", [2, 7, 8, 28, 33])
def test_any_side_gives_features_of_length_one(side):
    backbone, _ = with_dictionary(3)
    images = drawn(3, 3, side, side)
    assert torch.allclose(backbone(images).norm(dim=1), torch.ones(3), atol=1e-5)


def test_brighter_and_stronger_is_no_other_image_but_for_what_is_hardly_there():
    backbone, _ = with_dictionary(3)
    backbone.offsets.zero_()
    inside = slice(None), slice(None), slice(4, -4), slice(4, -4)  # a border is seen to be brighter
    images = drawn(2, 3, 16, 16) * 3
    one = F.conv2d(images[inside], backbone.filters)
    other = F.conv2d(images[inside] * 2 + 5, backbone.filters)
    torch.testing.assert_close(other, 2 * one, rtol=1e-3, atol=1e-2)


def test_images_a_few_at_a_time_have_the_answers_of_all_at_once(monkeypatch):
    backbone, _ = with_dictionary(3)
    images = drawn(70, 3, 8, 8)
    found = backbone.answers(images)
    monkeypatch.setattr("dcdc.networks.patches._FEW", 1000)
    torch.testing.assert_close(found, backbone.answers(images), rtol=1e-5, atol=1e-5)


def test_only_the_dense_layer_is_trained():
    backbone, _ = with_dictionary(3)
    assert {name for name, _ in backbone.named_parameters()} == {"dense.weight", "dense.bias"}
    assert {"filters", "offsets"} <= set(backbone.state_dict())
    backbone(drawn(20, 3, 8, 8)).sum().backward()
    assert backbone.dense.weight.grad.isfinite().all()
