import base64
import io

import numpy as np
import pytest
from PIL import Image

from dcdc.report.sheet import Sheet, make_sheet


def pixels(sheet: Sheet) -> np.ndarray:
    content = base64.b64decode(sheet.uri.partition(",")[2])
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


def tile(sheet: Sheet, index: int) -> np.ndarray:
    top, left = index // sheet.columns * sheet.pitch, index % sheet.columns * sheet.pitch
    return pixels(sheet)[top : top + sheet.side, left : left + sheet.side]


@pytest.fixture
def noise():
    random = np.random.default_rng(0)
    return lambda n, side, channels: random.integers(0, 256, (n, side, side, channels), np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_small_images_keep_every_pixel(noise, channels):
    images = noise(7, 8, channels)
    rows = [6, 2, 5, 0]
    sheet = make_sheet(images, rows)
    assert (sheet.side, sheet.pitch, sheet.columns) == (8, 8, 2)
    for index, row in enumerate(rows):
        np.testing.assert_array_equal(tile(sheet, index), np.broadcast_to(images[row], (8, 8, 3)))


@pytest.mark.parametrize(("side", "expected"), [(28, (28, 32)), (32, (32, 32)), (96, (32, 32))])
def test_larger_images_are_made_smaller_and_do_not_shine_into_each_other(side, expected):
    images = np.zeros((9, side, side, 3), np.uint8)
    images[::2] = 250
    sheet = make_sheet(images, range(9))
    assert (sheet.side, sheet.pitch) == expected
    for index in range(9):
        assert np.abs(tile(sheet, index).astype(int) - images[index, 0, 0]).max() <= 2


def test_a_tight_budget_costs_quality_then_size_then_the_sheet(noise):
    images = noise(100, 32, 3)
    whole = make_sheet(images, range(100))
    size = len(whole.uri.partition(",")[2]) * 3 // 4 - 2  # without base64's padding
    smaller = make_sheet(images, range(100), budget=size - 1)
    assert smaller.side == 32
    assert len(smaller.uri) < len(whole.uri)
    assert make_sheet(images, range(100), budget=size // 4).side < 32
    assert make_sheet(images, range(100), budget=1000) is None


def test_no_images_no_sheet(noise):
    assert make_sheet(noise(3, 8, 1), []) is None
