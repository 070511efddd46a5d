"""Every op against what torchvision made of the same images, as `torchvision_record.py` stored it.

The live comparison, `test_augment_torchvision.py`, needs torchvision; this one runs everywhere.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, ks_2samp

from dcdc.augment import to_float
from dcdc.augment.color import (
    Jitter,
    apply_grey,
    apply_jitter,
    apply_noise,
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
    draw_resize_crop,
    draw_resized_crop,
)

N_DRAWS = 3000

with np.load(Path(__file__).with_name("torchvision_record.npz")) as stored:
    RECORD = dict(stored)


def cases(op):
    """Its recorded cases, by name."""
    found = {}
    for key, value in RECORD.items():
        if key.startswith(f"{op}/"):
            _, case, field = key.split("/")
            found.setdefault(case, {})[field] = value
    return found


def on_each_case(op):
    found = cases(op)
    assert found, f"nothing is recorded of {op}"
    return pytest.mark.parametrize("case", found.values(), ids=found)


def seen(case):
    return to_float(torch.from_numpy(case["images"]))


def output(case, name="output"):
    low, middle, high = case[name].astype(np.int64)
    whole = low + (middle << 8) + (high << 16)
    return torch.from_numpy((whole * RECORD["unit"]).astype(np.float32))


def assert_same(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def assert_same_law(ours, theirs):
    assert ks_2samp(ours.double().numpy(), theirs).pvalue > 1e-3


def generator():
    return torch.Generator().manual_seed(0)


def test_the_record_names_its_versions():
    for package in ("torch", "torchvision"):
        assert int(str(RECORD[f"version/{package}"]).split(".")[1]) > 0


@on_each_case("to_float")
def test_to_float(case):
    torch.testing.assert_close(seen(case), torch.from_numpy(case["output"]), atol=1e-7, rtol=0)


@on_each_case("resized_crop")
def test_resized_crop(case):
    theirs = output(case)
    boxes = torch.from_numpy(case["boxes"])
    assert_same(apply_resized_crop(seen(case), boxes, *theirs.shape[2:]), theirs)


@on_each_case("resize_crop")
def test_resize_crop(case):
    theirs, resize_to = output(case), int(case["resize_to"])
    size = theirs.shape[-1]
    offsets = torch.from_numpy(case["offsets"])
    assert_same(apply_resize_crop(seen(case), offsets, resize_to, size), theirs)
    assert_same(apply_centre_crop(seen(case), resize_to, size), output(case, "centre"))


@on_each_case("centre_crop")
def test_centre_crop_rounding(case):
    theirs = output(case)
    assert len(theirs) == 7
    for resize_to, of_gap in zip(case["resize_to"].tolist(), theirs, strict=True):
        assert_same(apply_centre_crop(seen(case), resize_to, 8), of_gap)


@on_each_case("jitter")
def test_jitter(case):
    theirs = output(case)
    assert len(theirs) == 7
    when = torch.from_numpy(case["orders"]).argsort(1).float()  # an op's place in the order
    factors = torch.from_numpy(case["factors"]).unbind(1)
    for on, of_ops in zip(case["on"], theirs, strict=True):
        chosen = (factor if is_on else None for factor, is_on in zip(factors, on, strict=True))
        assert_same(apply_jitter(seen(case), Jitter(*chosen, when)), of_ops)


@on_each_case("grey_and_flip")
def test_grey_and_flip(case):
    chosen = torch.from_numpy(case["chosen"])
    assert_same(apply_grey(seen(case), chosen), output(case, "grey"))
    flipped = apply_flip(torch.from_numpy(case["images"]), chosen)
    assert torch.equal(flipped, torch.from_numpy(case["flipped"]))


@on_each_case("affine")
def test_affine(case):
    draw = Affine(*torch.from_numpy(case["draws"]).float().unbind(1))
    for fill, theirs in zip(case["fills"].tolist(), output(case), strict=True):
        given = None if np.isnan(fill) else fill
        assert_same(apply_affine(seen(case), draw, given), theirs)


@on_each_case("law_of_resized_crop")
def test_law_of_resized_crop(case):
    side, scale, ratio = (tuple(case[name].tolist()) for name in ("side", "scale", "ratio"))
    ours = draw_resized_crop(N_DRAWS, *side, scale, ratio, generator()).double()

    def numbers(top, left, height, width):
        return height * width, width / height, top, left, left + width

    theirs = numbers(*case["boxes"].astype(np.float64).T)
    for mine, other in zip(numbers(*ours.unbind(1)), theirs, strict=True):
        assert_same_law(mine, other)


@on_each_case("law_of_resize_crop")
def test_law_of_resize_crop(case):
    ours = draw_resize_crop(N_DRAWS, *case["sizes"].tolist(), generator())
    for axis in (0, 1):
        assert_same_law(ours[:, axis], case["offsets"][:, axis])


@on_each_case("law_of_jitter")
def test_law_of_jitter(case):
    ours = draw_jitter(N_DRAWS, *case["strengths"].tolist(), generator())
    for op in range(4):
        assert_same_law(ours[op], case["factors"][:, op])
    tables = [
        np.bincount(orders.astype(np.int64) @ [64, 16, 4, 1], minlength=256)
        for orders in (ours.when.argsort(1).numpy(), case["orders"])
    ]
    assert ((tables[0] > 0) == (tables[1] > 0)).all()
    assert chisquare(tables[0][tables[0] > 0]).pvalue > 1e-3


@on_each_case("law_of_affine")
def test_law_of_affine(case):
    rotation, shift, smallest, largest, shear = case["settings"].tolist()
    settings = (rotation, shift, (smallest, largest), shear)
    ours = draw_affine(N_DRAWS, *case["height_width"].tolist(), *settings, generator())
    for mine, other in zip(ours, case["draws"].T, strict=True):
        assert_same_law(mine, other)


@on_each_case("law_of_noise")
def test_law_of_noise(case):
    level, deviation = case["settings"].tolist()
    images = torch.full((20, 3, 8, 8), level)
    ours = apply_noise(images, draw_noise(images.shape, deviation, generator()))
    assert_same_law(ours.flatten(), case["output"])
