"""Pillow's operations against our own batched ones, and against torchvision where it is there."""

import numpy as np
import pytest
import torch
from PIL import Image

from baselines import pil_operations as pil
from dcdc.augment import to_float
from dcdc.augment.color import Jitter, apply_grey, apply_jitter
from dcdc.augment.geometry import (
    Affine,
    apply_affine,
    apply_flip,
    apply_resize_crop,
    apply_resized_crop,
    draw_affine,
    draw_resize_crop,
    draw_resized_crop,
)

N, SIDE = 12, 32
LEVEL = 1 / 255
GENERATOR = torch.Generator()
BLENDS = ["brightness", "contrast", "saturation"]


@pytest.fixture(params=["noise", "smooth", "grey"])
def pictures(request):
    random = np.random.default_rng(0)
    side = 4 if request.param == "smooth" else SIDE
    shape = (N, side, side) if request.param == "grey" else (N, side, side, 3)
    pictures = [Image.fromarray(pixels) for pixels in random.integers(0, 256, shape, np.uint8)]
    return [picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC) for picture in pictures]


@pytest.fixture
def images(pictures):
    pixels = np.stack([np.array(picture).reshape(SIDE, SIDE, -1) for picture in pictures])
    return to_float(torch.from_numpy(pixels).permute(0, 3, 1, 2))


def by_pillow(pictures, operation, parameters=None):
    """`parameters` hold a row for each picture."""
    rows = [()] * len(pictures) if parameters is None else parameters.tolist()
    return torch.stack(
        [
            pil.to_tensor(operation(picture, *row))
            for picture, row in zip(pictures, rows, strict=True)
        ]
    )


def distance(ours, theirs):
    assert ours.shape == theirs.shape
    return (ours - theirs).abs().max().item() / LEVEL


def one_change(name, factors):
    changes = [factors if name == field else None for field in Jitter._fields[:4]]
    return Jitter(*changes, torch.zeros(N, 4))


@pytest.mark.parametrize("name", BLENDS)
def test_blends_agree_within_rounding(pictures, images, name):
    factors = torch.linspace(0.2, 1.8, N)
    theirs = by_pillow(pictures, getattr(pil, name), factors[:, None])
    # Pillow cuts a result off, and rounds the grey that it mixes in.
    assert distance(apply_jitter(images, one_change(name, factors)), theirs) < 1.5


def test_hue_agrees_within_three_of_its_256_steps(pictures, images):
    """Bytes for the hue: a step is 6 levels of a full colour."""
    turns = torch.linspace(-0.5, 0.5, N)
    ours = apply_jitter(images, one_change("hue", turns))
    theirs = by_pillow(pictures, pil.hue, turns[:, None])
    assert distance(ours, theirs) < 3 * 6
    assert (ours - theirs).abs().mean() < 2 * LEVEL


def test_grey_and_flip_agree(pictures, images):
    every = torch.ones(N, dtype=torch.bool)
    assert distance(apply_grey(images, every), by_pillow(pictures, pil.grey)) < 1
    assert torch.equal(apply_flip(images, every), by_pillow(pictures, pil.flip))


def test_resized_crop_agrees_within_rounding(pictures, images):
    boxes = draw_resized_crop(N, SIDE, SIDE, (0.2, 1), (3 / 4, 4 / 3), GENERATOR.manual_seed(0))
    theirs = by_pillow(pictures, lambda image, *box: pil.resize(pil.crop(image, *box), SIDE), boxes)
    assert distance(apply_resized_crop(images, boxes, SIDE, SIDE), theirs) < 1.1


def test_resize_then_crop_agrees_within_rounding(pictures, images):
    corners = draw_resize_crop(N, 40, SIDE, GENERATOR.manual_seed(0))

    def cropped(image, top, left):
        return pil.crop(pil.resize(image, 40), top, left, SIDE, SIDE)

    theirs = by_pillow(pictures, cropped, corners)
    assert distance(apply_resize_crop(images, corners, 40, SIDE), theirs) < 1.1


def test_move_agrees_within_rounding_inside_the_picture(pictures, images):
    """At its border Pillow repeats the last pixel by half, where ours fades out."""
    draw = draw_affine(N, SIDE, SIDE, 14, 0.15, (0.85, 1.15), 6, GENERATOR.manual_seed(0))
    theirs = by_pillow(pictures, pil.move, torch.stack(draw, 1))
    inside = apply_affine(torch.ones(N, 1, SIDE, SIDE), draw) > 1 - 1e-6
    assert inside.float().mean() > 0.7
    assert distance(apply_affine(images, draw) * inside, theirs * inside) < 1.1


def test_tensors_are_normalised_and_noisy_as_asked_for(pictures):
    pixels = pil.to_tensor(pictures[0])
    assert pixels.is_contiguous()
    noisy = pil.add_noise(pixels, 0.2)
    assert 0 <= noisy.min() < noisy.max() <= 1
    assert 0.05 < (noisy - pixels).std() < 0.2
    n_channels = len(pixels)
    mean, std = tuple([0.25] * n_channels), tuple([0.5] * n_channels)
    expected = (pixels - 0.25) / 0.5
    torch.testing.assert_close(pil.normalise(pixels.clone(), mean, std), expected)


def test_operations_are_torchvisions_to_the_byte(pictures):
    tv = pytest.importorskip(
        "torchvision.transforms.functional", reason="torchvision is no dependency"
    )
    move = Affine(*(torch.tensor(value) for value in (11.0, 3.0, -2.0, 1.1, 5.0)))
    angle, right, down, scale, shear = (value.item() for value in move)
    for picture in pictures:
        channels = len(picture.getbands())
        pairs = [
            (pil.brightness(picture, 1.3), tv.adjust_brightness(picture, 1.3)),
            (pil.contrast(picture, 0.7), tv.adjust_contrast(picture, 0.7)),
            (pil.saturation(picture, 1.4), tv.adjust_saturation(picture, 1.4)),
            (pil.hue(picture, -0.3), tv.adjust_hue(picture, -0.3)),
            (pil.grey(picture), tv.to_grayscale(picture, channels)),
            (pil.flip(picture), tv.hflip(picture)),
            (pil.resize(picture, 40), tv.resize(picture, [40, 40])),
            (pil.crop(picture, 3, 5, 20, 25), tv.crop(picture, 3, 5, 20, 25)),
            (
                pil.move(picture, angle, right, down, scale, shear),
                tv.affine(
                    picture,
                    angle,
                    [int(right), int(down)],
                    scale,
                    [shear, 0.0],
                    interpolation=tv.InterpolationMode.BILINEAR,
                ),
            ),
        ]
        for number, (ours, theirs) in enumerate(pairs):
            assert np.array_equal(np.array(ours), np.array(theirs)), number
        assert torch.equal(pil.to_tensor(picture), tv.to_tensor(picture))
