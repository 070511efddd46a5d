import numpy as np
import pytest

from dcdc.data import ImageSet, channel_statistics
from dcdc.data.image_set import numbered_names

GOOD = {
    "images": np.zeros((2, 8, 8, 3), np.uint8),
    "names": ("a", "b"),
    "targets": np.array([0, 1]),
    "class_names": ("cat", "dog"),
}


def test_what_it_says_of_itself():
    image_set = ImageSet(**GOOD)
    assert image_set.n_images == 2
    assert image_set.image_shape == (8, 8, 3)
    assert (image_set.side, image_set.channels, image_set.n_classes) == (8, 3, 2)
    assert ImageSet(GOOD["images"], ["a", "b"]).n_classes is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"images": np.zeros((2, 8, 8, 3))},
        {"images": np.zeros((2, 8, 8), np.uint8)},
        {"images": np.zeros((2, 8, 9, 3), np.uint8)},
        {"images": np.zeros((2, 7, 7, 3), np.uint8)},
        {"images": np.zeros((2, 8, 8, 4), np.uint8)},
        {"images": np.zeros((0, 8, 8, 3), np.uint8), "names": (), "targets": np.zeros(0, int)},
        {"names": ("a",)},
        {"targets": None},
        {"class_names": ()},
        {"targets": np.array([0, 2])},
        {"targets": np.array([-1, 1])},
        {"targets": np.array([0])},
        {"targets": np.array([0, 1], np.int32)},
    ],
)
def test_a_set_that_does_not_hold_together_cannot_be_made(wrong):
    with pytest.raises(AssertionError):
        ImageSet(**{**GOOD, **wrong})


@pytest.mark.parametrize(("n", "last"), [(1, "x-0000"), (10_000, "x-9999"), (10_001, "x-10000")])
def test_numbered_names_sort_in_order(n, last):
    names = numbered_names("x", n)
    assert names[-1] == last
    assert list(names) == sorted(names)


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
