import colorsys

import pytest
import torch

from dcdc.augment.hue import shift_hue


def loop(image, shift):
    out = torch.empty_like(image)
    for row in range(image.shape[1]):
        for column in range(image.shape[2]):
            hue, saturation, value = colorsys.rgb_to_hsv(*image[:, row, column].tolist())
            rgb = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
            out[:, row, column] = torch.tensor(rgb)
    return out


@pytest.mark.parametrize("levels", [0, 1, 2, 255])
def test_equals_colorsys(levels):
    """With few levels the pixels are full of ties: grey, black, two equal channels."""
    generator = torch.Generator().manual_seed(levels)
    images = torch.rand(6, 3, 7, 9, generator=generator)
    if levels:
        images = (images * levels).round() / levels
    shift = torch.tensor([-0.5, -0.3, 0.0, 0.1, 0.37, 0.5])
    expected = [loop(image, s) for image, s in zip(images, shift.tolist(), strict=True)]
    torch.testing.assert_close(shift_hue(images, shift), torch.stack(expected), atol=2e-6, rtol=0)


def test_third_of_a_turn_rotates_the_channels():
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    turned = shift_hue(images, torch.full((2,), 1 / 3))
    torch.testing.assert_close(turned, images.roll(1, dims=1), atol=2e-6, rtol=0)


def test_grey_and_black_have_no_hue():
    images = torch.linspace(0, 1, 16).view(1, 1, 4, 4).expand(1, 3, 4, 4)
    assert torch.equal(shift_hue(images, torch.tensor([0.3])), images)
