import math
import random

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare, ks_2samp

from dcdc.augment import apply_resized_crop, draw_resized_crop
from dcdc.augment.resized_crop import fitting_boxes

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
from dcdc.augment import resized_crop
from dcdc.augment.resized_crop_kernel import fitting_boxes
takers = []
for taker in (resized_crop.fitting_boxes, fitting_boxes):
    for scale, height, width in (((0.2, 1.0), 32, 32), ((0.8, 1.0), 6, 19), ((0.01, 0.1), 5, 4)):
        resized_crop.fitting_boxes = taker
        generator = torch.Generator().manual_seed(0)
        ratio = (3 / 4, 4 / 3)
        boxes = resized_crop.draw_resized_crop(100, height, width, scale, ratio, generator)
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
    from dcdc.augment import resized_crop_kernel

    generator = torch.Generator("cuda").manual_seed(0)
    share = torch.rand((2, 1000, 10), generator=generator, device="cuda")
    areas, aspects = share[0] * side[0] * side[1], share[1] / 2 + 0.75
    places = torch.rand((2, 1000), generator=generator, device="cuda")
    given = (areas, aspects, places, side, centred)
    found, wanted = resized_crop_kernel.fitting_boxes(*given), fitting_boxes(*given)
    assert found.dtype == wanted.dtype
    assert (found != wanted).any(1).sum() <= 1  # a side may be on the brink of the next
