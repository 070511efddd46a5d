"""Every op against torchvision, with the same parameters, and every draw against its law."""

import pytest
import torch
from scipy.stats import chisquare, ks_2samp

from dcdc.augment import to_float
from dcdc.augment.color import (
    Jitter,
    apply_grey,
    apply_jitter,
    apply_noise,
    draw_grey,
    draw_jitter,
    draw_noise,
)
from dcdc.augment.geometry import (
    Affine,
    apply_affine,
    apply_centre_crop,
    apply_flip,
    apply_resize_crop,
    apply_resized_crop,
    draw_affine,
    draw_flip,
    draw_resize_crop,
    draw_resized_crop,
)

pytest.importorskip(
    "torchvision", reason="torchvision is no dependency; this comparison runs where it is installed"
)
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2

tv = v2.functional
SCALE, RATIO = (0.2, 1.0), (3 / 4, 4 / 3)
SHAPES = [(8, 3, 32, 32), (8, 1, 32, 32), (8, 3, 20, 37), (8, 3, 96, 96)]

on_each_device = pytest.mark.parametrize(
    "device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
)
on_each_shape = pytest.mark.parametrize("shape", SHAPES)


def make(shape, device, seed=0):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.rand(shape, generator=generator, device=device), generator


def assert_same(ours, theirs):
    theirs = torch.stack(theirs)
    # A coordinate near 96 has float32 steps of 8e-6, on pixels that differ by up to 1.
    atol = 1e-5 if max(theirs.shape[2:]) < 96 else 3e-5
    torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


def assert_same_law(ours, theirs):
    """Our draws (B) and a list of torchvision's."""
    assert ks_2samp(ours.double().cpu().numpy(), theirs).pvalue > 1e-3


@on_each_device
def test_to_float(device):
    images = torch.arange(256, dtype=torch.uint8, device=device).view(1, 1, 16, 16)
    theirs = tv.to_dtype(images, torch.float32, scale=True)
    torch.testing.assert_close(to_float(images), theirs, atol=1e-7, rtol=0)


@on_each_device
@on_each_shape
@pytest.mark.parametrize("out", [(32, 32), (96, 96), (9, 14)])
def test_resized_crop(shape, out, device):
    images, generator = make(shape, device)
    boxes = draw_resized_crop(8, *shape[2:], SCALE, RATIO, generator)
    theirs = [
        tv.resized_crop(image, *box, list(out), antialias=True)
        for image, box in zip(images, boxes.tolist(), strict=True)
    ]
    assert_same(apply_resized_crop(images, boxes, *out), theirs)


@on_each_device
@on_each_shape
@pytest.mark.parametrize(("resize_to", "size"), [(40, 32), (112, 96), (13, 8)])
def test_resize_crop(shape, resize_to, size, device):
    images, generator = make(shape, device)
    offsets = draw_resize_crop(8, resize_to, size, generator)
    resized = tv.resize(images, [resize_to, resize_to], antialias=True)
    theirs = [
        tv.crop(image, *offset, size, size)
        for image, offset in zip(resized, offsets.tolist(), strict=True)
    ]
    assert_same(apply_resize_crop(images, offsets, resize_to, size), theirs)
    centre = tv.center_crop(resized, [size, size])
    assert_same(apply_centre_crop(images, resize_to, size), list(centre))


@on_each_device
@pytest.mark.parametrize("gap", range(1, 8))
def test_centre_crop_rounding(gap, device):
    images, _ = make((2, 1, 11, 11), device)
    centre = tv.center_crop(tv.resize(images, [8 + gap, 8 + gap], antialias=True), [8, 8])
    assert_same(apply_centre_crop(images, 8 + gap, 8), list(centre))


OPS = [tv.adjust_brightness, tv.adjust_contrast, tv.adjust_saturation, tv.adjust_hue]


@on_each_device
@on_each_shape
@pytest.mark.parametrize("on", [(0,), (1,), (2,), (3,), (0, 1), (1, 2, 3), (0, 1, 2, 3)])
def test_jitter(shape, on, device):
    images, generator = make((48, *shape[1:]), device)
    full = draw_jitter(48, 0.8, 0.8, 0.8, 0.5, generator)
    jitter = Jitter(*(full[op] if op in on else None for op in range(4)), full.when)
    theirs = []
    for i, image in enumerate(images):
        for op in full.when[i].argsort().tolist():
            if op in on:
                image = OPS[op](image, full[op][i].item())
        theirs.append(image)
    assert_same(apply_jitter(images, jitter), theirs)


@on_each_device
@on_each_shape
def test_grey_and_flip(shape, device):
    images, generator = make(shape, device)
    chosen = draw_grey(8, 0.5, generator)
    theirs = [
        tv.rgb_to_grayscale(image, num_output_channels=shape[1]) if one else image
        for image, one in zip(images, chosen.tolist(), strict=True)
    ]
    assert_same(apply_grey(images, chosen), theirs)
    chosen = draw_flip(8, 0.5, generator)
    theirs = [
        tv.horizontal_flip(image) if one else image
        for image, one in zip(images, chosen.tolist(), strict=True)
    ]
    assert torch.equal(apply_flip(images, chosen), torch.stack(theirs))


@on_each_device
@on_each_shape
@pytest.mark.parametrize("fill", [None, 0.0, 0.3])
@pytest.mark.parametrize(
    ("rotation", "shift", "scale", "shear"),
    [
        (180, 0.0, (1.0, 1.0), 0),
        (0, 0.4, (1.0, 1.0), 0),
        (0, 0.0, (0.5, 2.0), 0),
        (0, 0.0, (1.0, 1.0), 40),
        (45, 0.2, (0.7, 1.4), 20),
    ],
)
def test_affine(shape, rotation, shift, scale, shear, fill, device):
    images, generator = make(shape, device)
    draw = draw_affine(8, *shape[2:], rotation, shift, scale, shear, generator)
    theirs = [
        tv.affine(
            image,
            angle=angle,
            translate=[right, down],
            scale=factor,
            shear=[slant, 0.0],
            interpolation=InterpolationMode.BILINEAR,
            fill=fill,
        )
        for image, angle, right, down, factor, slant in zip(
            images, *(value.tolist() for value in draw), strict=True
        )
    ]
    assert_same(apply_affine(images, draw, fill), theirs)


@on_each_device
def test_noise(device):
    images = torch.full((20, 3, 8, 8), 0.4, device=device)
    generator = torch.Generator(device).manual_seed(0)
    ours = apply_noise(images, draw_noise(images.shape, 0.25, generator))
    torch.manual_seed(1)
    theirs = v2.GaussianNoise(mean=0.0, sigma=0.25, clip=True)(images)
    assert_same_law(ours.flatten(), theirs.flatten().cpu().numpy())


@on_each_device
@pytest.mark.parametrize("side", [(32, 32), (96, 96), (24, 64)])
def test_law_of_resized_crop(side, device):
    image, generator = make((3, *side), device)
    ours = draw_resized_crop(3000, *side, SCALE, RATIO, generator).double()
    torch.manual_seed(1)
    crop = v1.RandomResizedCrop(32, SCALE, RATIO)
    theirs = [crop.get_params(image, list(crop.scale), list(crop.ratio)) for _ in range(3000)]

    def numbers(top, left, height, width):
        return height * width, width / height, top, left, left + width

    theirs = zip(*(numbers(*box) for box in theirs), strict=True)
    for mine, other in zip(numbers(*ours.unbind(1)), theirs, strict=True):
        assert_same_law(mine, other)


@on_each_device
def test_law_of_resize_crop(device):
    image, generator = make((3, 40, 40), device)
    ours = draw_resize_crop(3000, 40, 32, generator)
    torch.manual_seed(1)
    theirs = [v1.RandomCrop.get_params(image, (32, 32)) for _ in range(3000)]
    for axis in (0, 1):
        assert_same_law(ours[:, axis], [box[axis] for box in theirs])


@on_each_device
def test_law_of_jitter(device):
    strengths = (0.4, 0.8, 1.5, 0.3)
    ours = draw_jitter(4800, *strengths, torch.Generator(device).manual_seed(0))
    torch.manual_seed(1)
    jitter = v1.ColorJitter(*strengths)
    ranges = jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue
    theirs = [jitter.get_params(*ranges) for _ in range(4800)]
    for op in range(4):
        assert_same_law(ours[op], [draw[op + 1] for draw in theirs])
    tables = []
    for orders in (ours.when.argsort(1).cpu(), torch.stack([draw[0] for draw in theirs])):
        code = (orders * torch.tensor([64, 16, 4, 1])).sum(1)
        tables.append(torch.bincount(code, minlength=256))
    assert ((tables[0] > 0) == (tables[1] > 0)).all()
    assert chisquare(tables[0][tables[0] > 0].numpy()).pvalue > 1e-3


@on_each_device
def test_law_of_affine(device):
    ours = draw_affine(3000, 10, 30, 20, 0.1, (0.8, 1.5), 5, torch.Generator(device).manual_seed(0))
    torch.manual_seed(1)
    move = v1.RandomAffine(20, translate=(0.1, 0.1), scale=(0.8, 1.5), shear=5)
    theirs = []
    for _ in range(3000):
        angle, (right, down), scale, (shear, across) = move.get_params(
            move.degrees, move.translate, move.scale, move.shear, [30, 10]
        )
        assert across == 0
        theirs.append(Affine(angle, right, down, scale, shear))
    for name in Affine._fields:
        assert_same_law(getattr(ours, name), [getattr(draw, name) for draw in theirs])
