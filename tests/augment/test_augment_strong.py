"""Strong copies: each operation against Pillow's or a loop, and what is drawn."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from dcdc.augment import StrongCopy, to_float
from dcdc.augment.strong import MOVED, OPERATIONS, operate, punch


def pixels(n: int = 1, side: int = 16, channels: int = 3) -> torch.Tensor:
    draws = torch.Generator().manual_seed(0)
    shape = (n, channels, side, side)
    return torch.randint(30, 220, shape, generator=draws, dtype=torch.uint8)


def operated(images: torch.Tensor, name: str, strength: float) -> torch.Tensor:
    n = len(images)
    return operate(
        to_float(images), torch.full((n,), OPERATIONS.index(name)), torch.full((n,), strength)
    )


def by_pillow(images: torch.Tensor, change) -> torch.Tensor:
    array = np.asarray(change(Image.fromarray(images[0].permute(1, 2, 0).numpy())))
    return torch.from_numpy(array.copy()).permute(2, 0, 1)[None] / 255


PILLOWS = {
    ("autocontrast", 0.5): ImageOps.autocontrast,
    ("solarise", 0.4): lambda image: ImageOps.solarize(image, 0.4 * 255),
    ("posterise", 0.05): lambda image: ImageOps.posterize(image, 4),
    ("posterise", 0.5): lambda image: ImageOps.posterize(image, 6),
    ("posterise", 1.0): lambda image: image,
    ("colour", 0.0): lambda image: ImageEnhance.Color(image).enhance(0.05),
    ("contrast", 0.5): lambda image: ImageEnhance.Contrast(image).enhance(0.5),
    ("brightness", 1.0): lambda image: ImageEnhance.Brightness(image).enhance(0.95),
    ("sharpness", 0.0): lambda image: ImageEnhance.Sharpness(image).enhance(0.05),
    ("identity", 0.7): lambda image: image,
}


@pytest.mark.parametrize(("name", "strength"), PILLOWS)
def test_colours_change_as_pillow_changes_them(name, strength):
    images = pixels()
    wanted = by_pillow(images, PILLOWS[name, strength])
    # Pillow rounds to bytes, some of it twice.
    torch.testing.assert_close(operated(images, name, strength), wanted, atol=2.1 / 255, rtol=0)


def test_equalised_values_are_the_share_of_darker_pixels():
    images = pixels(side=6)
    found = operated(images, "equalise", 0.5)
    for channel in range(3):
        values = images[0, channel].flatten().tolist()
        n_below_brightest = sum(value < max(values) for value in values)
        wanted = [sum(other < value for other in values) / n_below_brightest for value in values]
        assert found[0, channel].flatten().tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["autocontrast", "equalise"])
def test_one_colour_stays_as_it_is(name):
    flat = torch.full((2, 3, 8, 8), 77, dtype=torch.uint8)
    torch.testing.assert_close(operated(flat, name, 0.5), to_float(flat))


def test_moves_are_about_the_centre_and_bring_in_black():
    square = torch.zeros(1, 1, 20, 20)
    square[:, :, 8:12, 8:12] = 1
    for strength, column in ((1.0, 2), (0.0, 14)):  # 0.3 of 20 pixels
        shifted = operated(square, "translate-x", strength)
        torch.testing.assert_close(shifted[:, :, 8:12, column : column + 4], torch.ones(1, 1, 4, 4))
        assert shifted.sum().item() == pytest.approx(16, abs=1e-3)
        torch.testing.assert_close(
            operated(square, "translate-y", strength), shifted.transpose(2, 3)
        )
    sheared = operated(square, "shear-x", 1.0)
    torch.testing.assert_close(operated(square, "shear-y", 1.0), sheared.transpose(2, 3))
    assert (sheared - square).abs().max() > 0.3
    turned = operated(to_float(pixels(side=21)), "rotate", 1.0)
    by_angle = by_pillow(
        pixels(side=21), lambda image: image.rotate(-30, resample=Image.Resampling.BILINEAR)
    )
    assert (turned - by_angle)[..., 6:-6, 6:-6].abs().mean() < 0.01
    for name in MOVED:
        torch.testing.assert_close(operated(square, name, 0.5), square)


def test_a_hole_is_a_grey_square_of_up_to_half_the_side():
    images = torch.zeros(3, 2, 16, 16)
    hole = torch.tensor([[0.5, 0.5, 1.0], [0.5, 0.25, 0.5], [0.0, 1.0, 1.0]])
    found = punch(images, hole)
    assert found.unique().tolist() == [0, 0.5]
    assert (found > 0).sum((1, 2, 3)).tolist() == [2 * 64, 2 * 16, 2 * 16]
    assert (found[0, :, 4:12, 4:12] > 0).all()
    assert (found[1, :, 6:10, 2:6] > 0).all()
    assert (found[2, :, :4, 12:] > 0).all()


def test_a_copy_has_operations_that_differ_and_each_is_drawn_as_often():
    copy, images = StrongCopy(n_repeats=2), pixels(2000, side=2)
    draw = copy.draw(images, torch.Generator().manual_seed(1))
    assert draw.operations.shape == (4000, 4)
    assert all(len(set(row)) == 4 for row in draw.operations[:100].tolist())
    shares = draw.operations.flatten().bincount(minlength=14) / draw.operations.numel()
    assert len(OPERATIONS) == 14
    torch.testing.assert_close(shares, torch.full((14,), 1 / 14), atol=0.01, rtol=0)


def test_copies_are_one_operation_after_the_other_then_the_hole():
    copy, images = StrongCopy(n_repeats=2), pixels(5)
    draw = copy.draw(images, torch.Generator().manual_seed(1))
    found = copy.apply(images, draw)
    assert found.shape == (10, 3, 16, 16)
    assert 0 <= found.min() <= found.max() <= 1
    for row in range(10):
        one = to_float(images[row % 5 : row % 5 + 1])
        one = one.flip(3) if draw.flip[row] else one
        for number, strength in zip(draw.operations[row], draw.strengths[row], strict=True):
            one = operate(one, number[None], strength[None])
        torch.testing.assert_close(found[row : row + 1], punch(one, draw.hole[row : row + 1]))


def test_a_part_of_a_draw_is_what_some_images_need():
    copy, images = StrongCopy(n_repeats=2), pixels(6)
    draw = copy.draw(images, torch.Generator().manual_seed(1))
    whole = copy.apply(images, draw).view(2, 6, 3, 16, 16)
    own = copy.apply(images[2:4], copy.part(draw, slice(2, 4)))
    torch.testing.assert_close(own, whole[:, 2:4].flatten(0, 1))
