"""The resize inside a graph against Pillow, which brings every other image to size."""

import numpy as np
import pytest
import torch

from dcdc.data.decode import square_images
from dcdc.export.check import random_photos
from dcdc.export.resizing import squared

SHAPES = [(8, 8), (8, 13), (5, 9), (16, 16), (31, 47), (47, 31), (64, 40), (100, 77), (301, 290)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [8, 11, 32])
def test_pixels_are_those_of_pillow_but_for_rounding(shape, size):
    photos = random_photos(5, shape, 3, np.random.default_rng(0))
    ours = squared(torch.from_numpy(photos).permute(0, 3, 1, 2).float(), size)
    off = np.abs(ours.permute(0, 2, 3, 1).numpy() - square_images(photos, size))
    assert off.max() <= 2
    assert (off > 0).mean() < 0.3
    if shape == (size, size):
        assert not off.any()


def test_whole_numbers_come_out():
    photos = torch.from_numpy(random_photos(2, (40, 90), 1, np.random.default_rng(1)))
    found = squared(photos.permute(0, 3, 1, 2).float(), 7)
    assert torch.equal(found, found.round())
    assert found.shape == (2, 1, 7, 7)
