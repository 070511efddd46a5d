import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare

from dcdc.augment import apply_centre_crop, apply_resize_crop, draw_resize_crop
from dcdc.augment.resize_crop import centre_crop_matrix


def resized(images, side):
    return F.interpolate(images, (side, side), mode="bilinear", antialias=True)


@pytest.mark.parametrize("shape", [(4, 3, 32, 32), (4, 1, 8, 8), (4, 3, 20, 33), (4, 3, 96, 50)])
@pytest.mark.parametrize(("resize_to", "size"), [(40, 32), (10, 8), (13, 13)])
def test_equals_resize_then_crop(shape, resize_to, size):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(shape, generator=generator)
    offsets = draw_resize_crop(4, resize_to, size, generator)
    expected = [
        whole[:, top : top + size, left : left + size]
        for whole, (top, left) in zip(resized(images, resize_to), offsets.tolist(), strict=True)
    ]
    ours = apply_resize_crop(images, offsets, resize_to, size)
    torch.testing.assert_close(ours, torch.stack(expected), atol=3e-6, rtol=0)


@pytest.mark.parametrize(
    ("resize_to", "size", "first"),
    # torchvision rounds half to even: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2
    [(40, 32, 4), (33, 32, 0), (35, 32, 2), (37, 32, 2), (32, 32, 0)],
)
def test_centre_crop_rounds_as_torchvision(resize_to, size, first):
    images = torch.rand(2, 3, 30, 31, generator=torch.Generator().manual_seed(1))
    expected = resized(images, resize_to)[:, :, first : first + size, first : first + size]
    torch.testing.assert_close(
        apply_centre_crop(images, resize_to, size), expected, atol=3e-6, rtol=0
    )


def test_the_centre_crop_as_a_matrix_of_its_own():
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    matrix = centre_crop_matrix(32, 40, 32)
    assert matrix.shape == (32, 32)
    torch.testing.assert_close(
        matrix @ images @ matrix.T, apply_centre_crop(images, 40, 32), atol=1e-6, rtol=0
    )


def test_every_offset_is_equally_likely():
    offsets = draw_resize_crop(20_000, 12, 8, torch.Generator().manual_seed(2))
    assert offsets.shape == (20_000, 2)
    assert offsets.min() >= 0
    assert offsets.max() <= 4
    counts = torch.bincount(offsets[:, 0] * 5 + offsets[:, 1], minlength=25)
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_seed_fixes_the_draw():
    draws = [draw_resize_crop(50, 40, 32, torch.Generator().manual_seed(s)) for s in (3, 3, 4)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
