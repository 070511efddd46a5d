import math

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from dcdc.augment import Affine, apply_affine, draw_affine


def one(n=1, angle=0.0, right=0.0, down=0.0, scale=1.0, shear=0.0):
    return Affine(*(torch.full((n,), float(v)) for v in (angle, right, down, scale, shear)))


def loop(image, angle, right, down, scale, shear):
    """Forward matrix as torchvision documents it, inverted by numpy; four taps a pixel."""
    channels, height, width = image.shape
    rot, tan = math.radians(angle), math.tan(math.radians(shear))
    turn = np.array([[math.cos(rot), -math.sin(rot)], [math.sin(rot), math.cos(rot)]])
    matrix = np.eye(3)
    matrix[:2, :2] = turn @ (scale * np.eye(2)) @ np.array([[1, -tan], [0, 1]])
    matrix[:2, 2] = right, down
    inverse = np.linalg.inv(matrix)
    out, coverage = np.zeros((channels, height, width)), np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            target = (column - (width - 1) / 2, row - (height - 1) / 2, 1)
            x, y, _ = inverse @ target
            x, y = x + (width - 1) / 2, y + (height - 1) / 2
            for i in (math.floor(y), math.floor(y) + 1):
                for j in (math.floor(x), math.floor(x) + 1):
                    if 0 <= i < height and 0 <= j < width:
                        weight = (1 - abs(y - i)) * (1 - abs(x - j))
                        coverage[row, column] += weight
                        out[:, row, column] += weight * image[:, i, j].numpy()
    return torch.tensor(out, dtype=torch.float32), torch.tensor(coverage, dtype=torch.float32)


@pytest.mark.parametrize("shape", [(6, 3, 9, 9), (6, 1, 8, 13), (6, 3, 12, 7)])
@pytest.mark.parametrize("fill", [None, 0.0, 0.7])
def test_equals_explicit_pixels(shape, fill):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(shape, generator=generator)
    draw = draw_affine(6, *shape[-2:], 60, 0.3, (0.6, 1.6), 30, generator)
    ours = apply_affine(images, draw, fill)
    for image, mine, *numbers in zip(images, ours, *(v.tolist() for v in draw), strict=True):
        expected, coverage = loop(image, *numbers)
        if fill is not None:
            expected = coverage * expected + (1 - coverage) * fill
        torch.testing.assert_close(mine, expected, atol=5e-6, rtol=0)


def test_neutral_is_identity():
    images = torch.rand(2, 3, 9, 14, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(apply_affine(images, one(2)), images, atol=2e-6, rtol=0)


def test_quarter_turn_is_clockwise():
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    expected = images.rot90(-1, (2, 3))
    torch.testing.assert_close(apply_affine(images, one(angle=90)), expected, atol=5e-6, rtol=0)


def test_shift_moves_right_and_down_and_leaves_the_fill():
    images = torch.rand(1, 1, 6, 8, generator=torch.Generator().manual_seed(3))
    moved = apply_affine(images, one(right=3, down=-2), fill=0.5)
    torch.testing.assert_close(moved[:, :, :4, 3:], images[:, :, 2:, :5], atol=2e-6, rtol=0)
    torch.testing.assert_close(moved[:, :, 4:], torch.full((1, 1, 2, 8), 0.5))
    torch.testing.assert_close(moved[:, :, :, :3], torch.full((1, 1, 6, 3), 0.5))


def test_law_of_the_draws():
    n = 20_000
    draw = draw_affine(n, 10, 30, 20, 0.1, (0.8, 1.5), 5, torch.Generator().manual_seed(4))
    for value, low, high in ((draw.angle, -20, 20), (draw.scale, 0.8, 1.5), (draw.shear, -5, 5)):
        assert kstest(value.numpy(), "uniform", (low, high - low)).pvalue > 1e-3
    for value, most in ((draw.right, 3), (draw.down, 1)):
        assert torch.equal(value, value.round())
        counts = torch.bincount((value + most).long(), minlength=2 * most + 1)
        # Rounding a uniform on +-most gives the two ends half the weight of the rest.
        expected = torch.ones(2 * most + 1, dtype=torch.float64)
        expected[0] = expected[-1] = 0.5
        assert chisquare(counts.numpy(), (expected * n / expected.sum()).numpy()).pvalue > 1e-3
    assert torch.corrcoef(torch.stack(draw)).sub(torch.eye(5)).abs().max() < 0.03


def test_seed_fixes_the_draw_and_neutral_ranges_draw_neutral_values():
    draws = [
        draw_affine(5, 8, 8, 30, 0.0, (1, 1), 0, torch.Generator().manual_seed(s))
        for s in (1, 1, 2)
    ]
    assert torch.equal(draws[0].angle, draws[1].angle)
    assert not torch.equal(draws[0].angle, draws[2].angle)
    assert draws[0].angle.unique().numel() == 5
    for value, neutral in zip(draws[0][1:], (0, 0, 1, 0), strict=True):
        assert (value == neutral).all()
