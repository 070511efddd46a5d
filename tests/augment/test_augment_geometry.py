import math
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binomtest, chisquare, ks_2samp, kstest

from dcdc.augment.geometry import (
    Affine,
    apply_affine,
    apply_centre_crop,
    apply_flip,
    apply_resize_crop,
    apply_resized_crop,
    axis_weights,
    centre_crop_matrix,
    draw_affine,
    draw_flip,
    draw_resize_crop,
    draw_resized_crop,
    fitting_boxes,
    resample,
)


def resample_box(images, boxes, out):
    top, left, height, width = boxes.unbind(1)
    rows = axis_weights(top, height, images.shape[2], out[0])
    columns = axis_weights(left, width, images.shape[3], out[1])
    return resample(images, rows, columns)


def pil_crop_then_resize(images, boxes, out):
    """The first channel of each image, in PIL's mode F."""
    return np.stack(
        [
            Image.fromarray(image[0].numpy())
            .crop((left, top, left + width, top + height))
            .resize(out[::-1], Image.Resampling.BILINEAR)
            for image, (top, left, height, width) in zip(images, boxes.tolist(), strict=True)
        ]
    )


@pytest.mark.parametrize("out", [(8, 8), (20, 31), (3, 40), (5, 4), (1, 1)])
@pytest.mark.parametrize("box", [(0, 0, 16, 24), (3, 5, 9, 11), (15, 23, 1, 1), (2, 0, 12, 24)])
def test_equals_pil_crop_then_resize(box, out):
    image = torch.rand(1, 1, 16, 24, generator=torch.Generator().manual_seed(1))
    boxes = torch.tensor([box])
    ours = resample_box(image, boxes, out)[:, 0].numpy()
    np.testing.assert_allclose(ours, pil_crop_then_resize(image, boxes, out), atol=2e-6)


@st.composite
def boxes_and_sizes(draw):
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    boxes = []
    for _ in range(3):
        h, w = draw(st.integers(1, height)), draw(st.integers(1, width))
        boxes.append((draw(st.integers(0, height - h)), draw(st.integers(0, width - w)), h, w))
    return height, width, boxes, (draw(st.integers(1, 30)), draw(st.integers(1, 30)))


@settings(max_examples=60, deadline=None)
@given(boxes_and_sizes())
def test_each_image_has_its_own_box(case):
    height, width, boxes, out = case
    images = torch.rand(3, 1, height, width, generator=torch.Generator().manual_seed(2))
    boxes = torch.tensor(boxes)
    ours = resample_box(images, boxes, out)[:, 0].numpy()
    np.testing.assert_allclose(ours, pil_crop_then_resize(images, boxes, out), atol=2e-6)


def test_pixels_outside_the_box_have_no_say():
    images = torch.rand(1, 3, 12, 12, generator=torch.Generator().manual_seed(3))
    loud = torch.full_like(images, 1e6)
    loud[:, :, 4:9, 2:8] = images[:, :, 4:9, 2:8]
    box = torch.tensor([[4, 2, 5, 6]])
    assert torch.equal(resample_box(images, box, (12, 12)), resample_box(loud, box, (12, 12)))


def test_whole_image_at_its_own_size_is_left_as_it_is():
    images = torch.rand(2, 3, 7, 10, generator=torch.Generator().manual_seed(4))
    box = torch.tensor([[0, 0, 7, 10]]).expand(2, 4)
    assert torch.equal(resample_box(images, box, (7, 10)), images)


def test_one_matrix_serves_all_images():
    images = torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(5))
    box = torch.tensor([[1, 0, 4, 6]])
    shared = resample_box(images, box, (5, 5))
    torch.testing.assert_close(shared, resample_box(images, box.expand(4, 4), (5, 5)))


@pytest.mark.parametrize("channels", [1, 3])
def test_only_the_chosen_are_mirrored(channels):
    images = torch.rand(4, channels, 5, 8, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([True, False, False, True])
    out = apply_flip(images, chosen)
    assert torch.equal(out[1:3], images[1:3])
    for column in range(8):
        assert torch.equal(out[chosen][..., column], images[chosen][..., 7 - column])
    assert torch.equal(apply_flip(out, chosen), images)


@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 1.0])
def test_probability(p):
    chosen = draw_flip(10_000, p, torch.Generator().manual_seed(1))
    assert binomtest(int(chosen.sum()), 10_000, p).pvalue > 1e-3
    assert torch.equal(chosen, draw_flip(10_000, p, torch.Generator().manual_seed(1)))


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


SCALE, RATIO = (0.2, 1.0), (3 / 4, 4 / 3)


def documented_box(height, width, scale, ratio, rng):
    """torchvision's algorithm for one image, in plain Python."""
    for _ in range(10):
        area = height * width * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return rng.randint(0, height - h), rng.randint(0, width - w), h, w
    if width / height < ratio[0]:
        w, h = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        w, h = round(height * ratio[1]), height
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


def test_equals_a_loop_over_images():
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(16, 3, 24, 18, generator=generator)
    boxes = draw_resized_crop(16, 24, 18, SCALE, RATIO, generator)
    expected = [
        F.interpolate(
            image[None, :, top : top + h, left : left + w],
            (11, 24),
            mode="bilinear",
            antialias=True,
        )
        for image, (top, left, h, w) in zip(images, boxes.tolist(), strict=True)
    ]
    ours = apply_resized_crop(images, boxes, 11, 24)
    torch.testing.assert_close(ours, torch.cat(expected), atol=2e-6, rtol=0)


@pytest.mark.parametrize("side", [(32, 32), (96, 96), (24, 64), (40, 12)])
def test_law_of_the_boxes(side):
    n = 6000
    boxes = draw_resized_crop(n, *side, SCALE, RATIO, torch.Generator().manual_seed(1)).double()
    rng = random.Random(2)
    port = torch.tensor([documented_box(*side, SCALE, RATIO, rng) for _ in range(n)]).double()
    for number in (
        lambda b: b[:, 2] * b[:, 3],  # area
        lambda b: b[:, 3] / b[:, 2],  # aspect
        lambda b: b[:, 0],
        lambda b: b[:, 1],
    ):
        assert ks_2samp(number(boxes), number(port)).pvalue > 1e-3


def test_boxes_lie_inside_and_reach_both_edges():
    height, width = 20, 32
    boxes = draw_resized_crop(5000, height, width, SCALE, RATIO, torch.Generator().manual_seed(3))
    top, left, h, w = boxes.unbind(1)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (top + h).max() == height
    assert (left + w).max() == width
    assert ((top == 0) & (h < height)).any()
    assert ((left == 0) & (w < width)).any()
    assert ((top + h == height) & (h < height)).any()


def test_offsets_are_uniform_for_a_given_side():
    boxes = draw_resized_crop(
        40_000, 10, 10, (0.49, 0.49), (1.0, 1.0), torch.Generator().manual_seed(4)
    )
    assert (boxes[:, 2:] == 7).all()
    counts = torch.bincount(boxes[:, 0] * 4 + boxes[:, 1], minlength=16)
    assert counts.shape == (16,)
    assert chisquare(counts.numpy()).pvalue > 1e-3


@pytest.mark.parametrize(
    ("side", "box"),
    [
        ((8, 64), (0, 26, 8, 11)),  # too wide: the ratio's upper end, 8 * 4/3
        ((64, 8), (26, 0, 11, 8)),  # too high: the lower end, 8 / (3/4)
        ((9, 9), (0, 0, 9, 9)),
    ],
)
def test_centred_box_when_no_attempt_fits(side, box):
    ratio = RATIO if side != (9, 9) else (0.5, 2.0)
    scale = (0.9, 1.0) if side != (9, 9) else (1.5, 1.6)  # larger than the image: never fits
    boxes = draw_resized_crop(20, *side, scale, ratio, torch.Generator().manual_seed(5))
    assert boxes.tolist() == [list(box)] * 20


def test_one_attempt_in_ten_is_enough():
    # About one attempt in eight fits here, so one draw alone would fall back far more often.
    side, scale = (16, 32), (0.2, 2.5)
    boxes = draw_resized_crop(4000, *side, scale, RATIO, torch.Generator().manual_seed(6))
    rng = random.Random(7)
    port = [documented_box(*side, scale, RATIO, rng) for _ in range(4000)]
    fallback = (boxes == torch.tensor([0, 5, 16, 21])).all(1).float().mean().item()
    expected = sum(box == (0, 5, 16, 21) for box in port) / len(port)
    assert 0.02 < expected < 0.6
    assert abs(fallback - expected) < 0.04


def test_seed_fixes_the_draw_and_images_differ():
    draws = [
        draw_resized_crop(50, 32, 32, SCALE, RATIO, torch.Generator().manual_seed(s))
        for s in (8, 8, 9)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert len(draws[0].unique(dim=0)) > 40


KERNEL = """
import torch
from dcdc.augment import geometry
from dcdc.augment.copy_kernel import fitting_boxes
takers = []
for taker in (geometry.fitting_boxes, fitting_boxes):
    for scale, height, width in (((0.2, 1.0), 32, 32), ((0.8, 1.0), 6, 19), ((0.01, 0.1), 5, 4)):
        geometry.fitting_boxes = taker
        generator = torch.Generator().manual_seed(0)
        ratio = (3 / 4, 4 / 3)
        boxes = geometry.draw_resized_crop(100, height, width, scale, ratio, generator)
        takers.append((taker.__module__, boxes))
for (tensors, wanted), (kernel, found) in zip(takers[:3], takers[3:], strict=True):
    assert tensors != kernel
    assert torch.equal(found, wanted)
print("agrees")
"""


def test_the_kernel_makes_the_same_boxes(interpreted):
    assert interpreted(KERNEL) == "agrees\n"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("side", "centred"), [((32, 32), (32, 32)), ((20, 90), (20, 27))])
def test_on_a_gpu_too(side, centred):
    from dcdc.augment import copy_kernel

    generator = torch.Generator("cuda").manual_seed(0)
    share = torch.rand((2, 1000, 10), generator=generator, device="cuda")
    areas, aspects = share[0] * side[0] * side[1], share[1] / 2 + 0.75
    places = torch.rand((2, 1000), generator=generator, device="cuda")
    given = (areas, aspects, places, side, centred)
    found, wanted = copy_kernel.fitting_boxes(*given), fitting_boxes(*given)
    assert found.dtype == wanted.dtype
    assert (found != wanted).any(1).sum() <= 1  # a side may be on the brink of the next
