import numpy as np
import pytest

from dcdc.data import channel_statistics


def test_they_are_those_of_all_pixels_scaled_to_one():
    images = np.random.default_rng(0).integers(0, 200, (600, 8, 8, 3), np.uint8)
    images[..., 1] //= 2
    mean, std = channel_statistics(images)
    assert mean == pytest.approx((images / 255).mean(axis=(0, 1, 2)), abs=1e-6)
    assert std == pytest.approx((images / 255).std(axis=(0, 1, 2)), abs=1e-6)


def test_a_set_of_one_flat_colour_can_be_normalised():
    mean, std = channel_statistics(np.full((4, 8, 8, 3), 51, np.uint8))
    assert mean == pytest.approx((0.2, 0.2, 0.2))
    assert min(std) > 0


def test_a_large_set_is_sampled_all_over():
    images = np.zeros((25_000, 8, 8, 1), np.uint8)
    images[12_500:] = 255
    assert channel_statistics(images)[0] == pytest.approx((0.5,), abs=1e-3)
