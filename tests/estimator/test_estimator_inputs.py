"""Every way in leads to the same images, in predict as in fit; what is none is refused."""

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import BaseEstimator

from dcdc.data import ImageSet, from_arrays
from dcdc.errors import InputError
from dcdc.estimator.inputs import Layout, Wanted, read_first, read_more

RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (6, 8, 8), dtype=np.uint8)
COLOUR = RANDOM.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


class Learner(BaseEstimator):
    """Any estimator: scikit-learn notes the columns on it."""


def fitted(n_columns: int) -> Learner:
    learner = Learner()
    learner.n_features_in_ = n_columns
    return learner


def first(given, **wanted) -> tuple[ImageSet, Layout]:
    return read_first(Learner(), given, Wanted(**wanted))


def refused(given, **wanted) -> str:
    with pytest.raises(InputError) as caught:
        first(given, **wanted)
    return str(caught.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (COLOUR, {}),
        (COLOUR.transpose(0, 3, 1, 2), {}),
        (COLOUR / 255, {}),
        (COLOUR.astype(np.float32), {}),
        (list(COLOUR), {}),
        (torch.from_numpy(COLOUR).permute(0, 3, 1, 2), {}),
        (torch.from_numpy(COLOUR / 255).requires_grad_(), {}),
        (COLOUR.reshape(6, -1), {"image_shape": (8, 8, 3)}),
        (COLOUR.transpose(0, 3, 1, 2).reshape(6, -1), {"image_shape": (3, 8, 8)}),
        (COLOUR.reshape(6, -1).tolist(), {"image_shape": (8, 8, 3)}),
        (COLOUR * (2 / 255) - 1, {"value_range": (-1, 1)}),
        (from_arrays(COLOUR), {}),
    ],
)
def test_every_layout_leads_to_the_same_images(given, wanted):
    images, layout = first(given, **wanted)
    assert np.array_equal(images.images, COLOUR)
    assert layout.n_features == 192
    again = read_more(fitted(192), given, layout, 8, 3)
    assert np.array_equal(again.images, COLOUR)


def test_a_square_number_of_columns_is_a_grey_image():
    images, layout = first(GREY.reshape(6, 64))
    assert np.array_equal(images.images[..., 0], GREY)
    assert layout.row_shape == (8, 8)


@pytest.mark.parametrize("n_columns", [1, 3, 16, 49, 65])
def test_other_rows_are_no_images(n_columns):
    images, layout = first(RANDOM.normal(size=(6, n_columns)))
    assert layout.columns is not None
    assert images.channels == 1


def test_paths_are_decoded_in_their_order(tmp_path):
    paths = []
    for number in (2, 0, 1):
        Image.fromarray(COLOUR[number]).save(tmp_path / f"{number}.png")
        paths.append(tmp_path / f"{number}.png")
    for given in (paths, [str(path) for path in paths], np.array([str(path) for path in paths])):
        images, layout = first(given)
        assert np.array_equal(images.images, COLOUR[[2, 0, 1]])
    more = read_more(None, [paths[1]] * 2, layout, 8, 3)
    assert np.array_equal(more.images, COLOUR[[0, 0]])
    Image.fromarray(GREY[0]).save(tmp_path / "grey.png")
    grey = read_more(None, [tmp_path / "grey.png"], layout, 8, 3)
    assert np.array_equal(grey.images[0], GREY[0][..., None].repeat(3, axis=2))
    assert "no such file" in refused([tmp_path / "gone.png", paths[0]])


def test_images_of_another_size_are_brought_to_the_models():
    _, layout = first(GREY)
    larger = GREY.repeat(2, axis=1).repeat(2, axis=2)
    for given in (larger, from_arrays(larger)):
        assert read_more(None, given, layout, 8, 1).images.shape == (6, 8, 8, 1)


def test_later_floats_are_read_on_the_scale_of_the_first():
    _, layout = first(GREY.astype(float))
    dark = np.minimum(GREY, 1).astype(float)  # by themselves these would be 0..1
    assert read_more(None, dark, layout, 8, 1).images.max() == 1
    _, layout = first(GREY / 255)
    with pytest.raises(InputError, match=r"values up to 200, but the model was fitted on floats f"):
        read_more(None, np.full((2, 8, 8), 200.0), layout, 8, 1)


def test_floats_that_would_be_nearly_black_are_warned_of():
    with pytest.warns(UserWarning, match=r"value_range=\(0, 16\) if that is white"):
        first(np.linspace(0, 16, 128).reshape(2, 8, 8))


def test_a_model_of_rows_takes_rows_alone():
    _, layout = first(RANDOM.normal(size=(6, 3)))
    with pytest.raises(InputError, match="fitted on rows of a table"):
        read_more(None, GREY, layout, 8, 1)
    _, layout = first(GREY)
    with pytest.raises(InputError, match="fitted on images: give N x H x W x C"):
        read_more(fitted(64), GREY.reshape(6, 64), layout, 8, 1)


def with_nan(images) -> np.ndarray:
    images = images / 255
    images[3].flat[5] = np.nan
    return images


@pytest.mark.parametrize(
    ("given", "wanted", "message"),
    [
        (with_nan(GREY), {}, "X has NaN or infinite values, first in row 3"),
        (with_nan(GREY), {"value_range": (0, 1)}, "NaN or infinite values, first in row 3"),
        (with_nan(GREY).reshape(6, 64), {}, "NaN or infinite values, first in row 3"),
        (GREY[0, 0], {}, "X has shape (8,): give images or rows"),
        (GREY[None, None], {}, "X has shape"),
        (GREY.reshape(6, 64), {"image_shape": (8, 9)}, "has 72 values, but X has 64 columns"),
        (GREY.reshape(6, 64), {"image_shape": (64,)}, "is no image: give (H, W)"),
        (GREY, {"image_shape": (8, 9)}, "drop image_shape, which is for flat rows"),
        (GREY - 300.0, {}, "X has values from"),
        ([GREY[0], COLOUR[0]], {}, "X has images of different shapes"),
        ("photos", {}, "give a list of paths, or dcdc.data.load_images('photos')"),
        (RANDOM.integers(0, 9, (6, 4, 4)), {}, "at least 8 x 8"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(given, wanted, message):
    said = refused(given, **wanted)
    assert message in said
    assert "\n" not in said
