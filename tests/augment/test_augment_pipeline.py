import math

import pytest
import torch
import torch.nn.functional as F

from dcdc.augment import OriginalCopy, PerturbedCopy, pipeline, to_float
from dcdc.augment.color import (
    apply_grey,
    apply_jitter,
    apply_noise,
    draw_grey,
    draw_jitter,
    draw_noise,
)
from dcdc.augment.geometry import (
    apply_affine,
    apply_flip,
    apply_resized_crop,
    draw_affine,
    draw_flip,
    draw_resized_crop,
)
from dcdc.errors import InputError

AUTHORS = {
    "crop_scale": (0.2, 1.0),
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "hue": 0.4,
    "grey": 0.2,
    "flip": 0.5,
}
EVERYTHING = {
    **AUTHORS,
    "rotation": 20,
    "shift": 0.1,
    "scale": (0.8, 1.2),
    "shear": 10,
    "noise": 0.05,
}


def batch(n=4, channels=3, height=12, width=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, channels, height, width, generator=generator)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_original_is_a_random_crop_of_the_resized_image():
    images = batch(64)
    out = OriginalCopy(12, 15)(images, seeded())
    whole = F.interpolate(images, (15, 15), mode="bilinear", antialias=True)
    windows = whole.unfold(2, 12, 1).unfold(3, 12, 1).flatten(2, 3)  # B x C x 16 x 12 x 12
    distance = (windows - out[:, :, None]).abs().amax((1, 3, 4))
    assert distance.amin(1).max() < 1e-5
    assert distance.argmin(1).unique().numel() > 8


def test_centre_is_the_middle_and_takes_no_generator():
    images = batch()
    whole = F.interpolate(images, (16, 16), mode="bilinear", antialias=True)
    torch.testing.assert_close(
        OriginalCopy(12, 16).centre(images), whole[:, :, 2:14, 2:14], atol=2e-6, rtol=0
    )


@pytest.mark.parametrize("resize_to", [0, 12])
def test_original_without_a_resize_is_the_image(resize_to):
    images, copy = batch(), OriginalCopy(12, resize_to)
    assert torch.equal(copy(images, seeded()), images)
    assert torch.equal(copy.centre(images), images)


def test_neutral_perturbation_repeats_the_batch_copy_by_copy():
    images = batch()
    out = PerturbedCopy(n_repeats=3)(images, seeded())
    assert torch.equal(out, torch.cat((images, images, images)))


def test_order_of_the_ops():
    images, generator = batch(), seeded(1)
    ours = PerturbedCopy(**EVERYTHING, n_repeats=2)(images, seeded(1))
    out = torch.cat((images, images))
    out = apply_affine(out, draw_affine(8, 12, 12, 20, 0.1, (0.8, 1.2), 10, generator))
    boxes = draw_resized_crop(8, 12, 12, (0.2, 1.0), (3 / 4, 4 / 3), generator)
    out = apply_resized_crop(out, boxes, 12, 12)
    out = apply_jitter(out, draw_jitter(8, 0.4, 0.4, 0.4, 0.4, generator))
    out = apply_grey(out, draw_grey(8, 0.2, generator))
    out = apply_flip(out, draw_flip(8, 0.5, generator))
    out = apply_noise(out, draw_noise(out.shape, 0.05, generator))
    assert torch.equal(ours, out)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [(12, 12), (9, 16)])
def test_any_shape_keeps_its_size_and_range(channels, side):
    out = PerturbedCopy(**EVERYTHING, n_repeats=2)(batch(5, channels, *side), seeded())
    assert out.shape == (10, channels, *side)
    assert out.isfinite().all()
    assert out.min() >= 0
    assert out.max() <= 1


def test_every_copy_of_every_image_has_its_own_draw():
    same = batch(1).expand(6, -1, -1, -1)
    out = PerturbedCopy(**AUTHORS, n_repeats=3)(same, seeded())
    assert len(out.flatten(1).unique(dim=0)) == 18
    out = OriginalCopy(12, 20)(same, seeded())
    assert len(out.flatten(1).unique(dim=0)) > 3


@pytest.mark.parametrize(
    "change",
    [
        {"rotation": 20},
        {"shift": 0.3},
        {"scale": (0.5, 0.6)},
        {"shear": 20},
        {"crop_scale": (0.2, 0.5)},
        {"brightness": 0.5},
        {"contrast": 0.5},
        {"saturation": 0.5},
        {"hue": 0.3},
        {"grey": 1.0},
        {"flip": 1.0},
        {"noise": 0.1},
    ],
)
def test_each_argument_alone_changes_the_images(change):
    images = batch()
    out = PerturbedCopy(**change)(images, seeded())
    assert (out - images).abs().amax((1, 2, 3)).min() > 1e-3


def test_crops_are_wide_or_tall_as_far_as_torchvision_has_it(monkeypatch):
    assert pipeline.CROP_RATIO == (3 / 4, 4 / 3)
    images = torch.arange(12.0).expand(1, 1, 12, 12).div(12).repeat(50, 1, 1, 1)
    ranges = []
    for ratio in ((4.0, 4.0), (0.25, 0.25)):  # wide boxes keep more of a horizontal ramp
        monkeypatch.setattr(pipeline, "CROP_RATIO", ratio)
        out = PerturbedCopy(crop_scale=(0.2, 0.2))(images, seeded())
        ranges.append((out.amax((1, 2, 3)) - out.amin((1, 2, 3))).mean())
    assert ranges[0] > 2 * ranges[1]


@pytest.mark.parametrize("copy", [OriginalCopy(12, 16), PerturbedCopy(**EVERYTHING)])
def test_seed_fixes_the_result(copy):
    images = batch()
    assert torch.equal(copy(images, seeded(1)), copy(images, seeded(1)))
    assert not torch.equal(copy(images, seeded(1)), copy(images, seeded(2)))
    generator = seeded(1)
    assert not torch.equal(copy(images, generator), copy(images, generator))


@pytest.mark.parametrize("copy", [OriginalCopy(12, 16), PerturbedCopy(**EVERYTHING)])
def test_bytes_are_welcome_and_inputs_are_left_alone(copy):
    images = (batch() * 255).byte()
    before = images.clone()
    assert torch.equal(copy(images, seeded()), copy(to_float(images), seeded()))
    assert torch.equal(images, before)
    floats = to_float(images)
    copy(floats, seeded())
    assert torch.equal(floats, to_float(before))


@pytest.mark.parametrize(("size", "resize_to"), [(0, 0), (-1, 4), (32, 31), (32, -1)])
def test_original_refuses(size, resize_to):
    with pytest.raises(InputError, match="give"):
        OriginalCopy(size, resize_to)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_repeats", 0),
        ("crop_scale", (0.0, 1.0)),
        ("crop_scale", (0.9, 0.2)),
        ("crop_scale", (0.2, 1.1)),
        ("brightness", -0.1),
        ("brightness", math.nan),
        ("contrast", -0.1),
        ("saturation", math.inf),
        ("hue", 0.6),
        ("hue", -0.1),
        ("grey", 1.1),
        ("flip", -0.1),
        ("rotation", -1),
        ("rotation", 181),
        ("shift", 1.5),
        ("scale", (0.0, 1.0)),
        ("scale", (1.2, 0.8)),
        ("shear", 90),
        ("noise", -0.1),
    ],
)
def test_perturbed_refuses_and_names_the_value(name, value):
    with pytest.raises(InputError) as caught:
        PerturbedCopy(**{name: value})
    assert str(caught.value).startswith(f"{name} is {value}: give ")


def test_a_part_of_a_draw_makes_the_same_copies_of_its_images():
    images = torch.randint(0, 256, (7, 3, 12, 12), dtype=torch.uint8)
    perturbed = PerturbedCopy(
        n_repeats=3,
        **{"crop_scale": (0.4, 1.0), "brightness": 0.4, "hue": 0.1, "grey": 0.5, "flip": 0.5},
        **{"rotation": 20, "shift": 0.1, "noise": 0.1},
    )
    original = OriginalCopy(12, 16)
    generator = torch.Generator().manual_seed(0)
    rows = slice(2, 5)
    for copy, n_copies in ((original, 1), (perturbed, 3)):
        draw = copy.draw(images, generator)
        whole = copy.apply(images, draw).unflatten(0, (n_copies, 7))
        part = copy.apply(images[rows], copy.part(draw, rows))
        assert torch.equal(part, whole[:, rows].flatten(0, 1))
    assert original.part(None, rows) is None
    off = PerturbedCopy(n_repeats=2)
    assert off.part(off.draw(images, generator), rows) == off.draw(images[rows], generator)
