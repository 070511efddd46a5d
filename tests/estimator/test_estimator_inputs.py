"""Every way in leads to the same images or vectors, in predict as in fit; others are refused."""

import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import BaseEstimator

from dcdc.config import DataConfig
from dcdc.data import Data, VectorSet, from_arrays, from_vectors
from dcdc.errors import InputError
from dcdc.estimator.inputs import read_first, read_more
from dcdc.estimator.layout import Layout, Wanted, layout_of, require_meaning

RANDOM = np.random.default_rng(0)
GREY = RANDOM.integers(0, 256, (6, 8, 8), dtype=np.uint8)
COLOUR = RANDOM.integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)


class Learner(BaseEstimator):
    """Any estimator: scikit-learn notes the columns on it."""


def fitted(n_columns: int) -> Learner:
    learner = Learner()
    learner.n_features_in_ = n_columns
    return learner


def first(given, copies=None, **wanted) -> tuple[Data, Layout]:
    asked = Wanted(**wanted)
    asked.check()
    source, layout = read_first(Learner(), given, asked, copies)
    if layout is None:
        source = source(96)  # pixels that photos are brought to
        layout = layout_of(source)
    return source, layout


def more(given, layout, size=8, channels=1, *, columns=64, **data) -> Data:
    return read_more(fitted(columns), given, layout, size, channels, DataConfig(**data))


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
    again = more(given, layout, channels=3, columns=192)
    assert np.array_equal(again.images, COLOUR)


class Frame:
    """As a DataFrame looks."""

    columns = ("a", "b", "c", "d", "e")

    def __init__(self, rows) -> None:
        self.rows, self.shape = rows, rows.shape

    def __array__(self, dtype=None, copy=None):
        return self.rows.astype(dtype or self.rows.dtype)


ROWS = RANDOM.normal(size=(6, 5)).astype(np.float32)


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        ROWS.astype(np.float64),
        ROWS.tolist(),
        torch.from_numpy(ROWS).requires_grad_(),
        Frame(ROWS),
        from_vectors(ROWS),
    ],
    ids=["float32", "float64", "lists", "tensor", "frame", "set"],
)
def test_rows_are_feature_vectors(given):
    vectors, layout = first(given)
    assert isinstance(vectors, VectorSet)
    assert np.array_equal(vectors.vectors, ROWS)
    assert layout == Layout(5, are_vectors=True)
    again = more(given, layout, columns=5)
    assert np.array_equal(again.vectors, ROWS)


@pytest.mark.parametrize("n_columns", [1, 64, 784])
def test_no_number_of_columns_makes_a_row_an_image(n_columns):
    pixels = RANDOM.integers(0, 256, (6, n_columns), dtype=np.uint8)
    vectors, layout = first(pixels)
    assert layout.are_vectors
    assert np.array_equal(vectors.vectors, pixels)


def test_half_precision_is_kept():
    for given in (ROWS.astype(np.float16), torch.from_numpy(ROWS).half()):
        assert first(given)[0].vectors.dtype == np.float16
    brain = torch.from_numpy(ROWS).bfloat16()
    assert np.array_equal(first(brain)[0].vectors, brain.float().numpy())


def test_copies_are_rows_of_the_same_images():
    vectors, _ = first(ROWS, copies=torch.from_numpy(ROWS + 1))
    assert np.array_equal(vectors.copies, ROWS + 1)
    with pytest.raises(InputError, match=r"X has shape \(6, 5\) but its copies have \(5, 5\)"):
        first(ROWS, copies=ROWS[1:])
    for given, wanted in ((GREY, {}), (GREY.reshape(6, 64), {"image_shape": (8, 8)})):
        with pytest.raises(InputError, match="copies are for feature vectors"):
            first(given, copies=GREY, **wanted)


def test_files_of_feature_vectors_are_read_in_predict_too(tmp_path):
    np.save(tmp_path / "more.npy", ROWS[:2])
    layout = Layout(5, are_vectors=True)
    for path in (tmp_path / "more.npy", str(tmp_path / "more.npy")):
        assert np.array_equal(more(path, layout, columns=5).vectors, ROWS[:2])
    np.savez(tmp_path / "two.npz", near=ROWS, far=ROWS + 1)
    read = more(tmp_path / "two.npz", layout, columns=5, column="far")
    assert np.array_equal(read.vectors, ROWS + 1)


def test_paths_are_decoded_in_their_order(tmp_path):
    paths = []
    for number in (2, 0, 1):
        Image.fromarray(COLOUR[number]).save(tmp_path / f"{number}.png")
        paths.append(tmp_path / f"{number}.png")
    for given in (paths, [str(path) for path in paths], np.array([str(path) for path in paths])):
        images, layout = first(given)
        assert np.array_equal(images.images, COLOUR[[2, 0, 1]])
    again = more([paths[1]] * 2, layout, channels=3)
    assert np.array_equal(again.images, COLOUR[[0, 0]])
    assert np.array_equal(more(tmp_path, layout, channels=3).images, COLOUR[:3])  # sorted by name
    Image.fromarray(GREY[0]).save(tmp_path / "grey.png")
    grey = more([tmp_path / "grey.png"], layout, channels=3)
    assert np.array_equal(grey.images[0], GREY[0][..., None].repeat(3, axis=2))
    assert "no such file" in refused([tmp_path / "gone.png", paths[0]])


def test_images_of_another_size_are_brought_to_the_models():
    _, layout = first(GREY)
    larger = GREY.repeat(2, axis=1).repeat(2, axis=2)
    for given in (larger, from_arrays(larger)):
        assert more(given, layout).images.shape == (6, 8, 8, 1)


def test_later_floats_are_read_on_the_scale_of_the_first():
    _, layout = first(GREY.astype(float))
    dark = np.minimum(GREY, 1).astype(float)  # by themselves these would be 0..1
    assert more(dark, layout).images.max() == 1
    _, layout = first(GREY / 255)
    with pytest.raises(InputError, match=r"values up to 200, but the model was fitted on floats f"):
        more(np.full((2, 8, 8), 200.0), layout)


def test_floats_that_would_be_nearly_black_are_warned_of():
    with pytest.warns(UserWarning, match=r"value_range=\(0, 16\) if that is white"):
        first(np.linspace(0, 16, 128).reshape(2, 8, 8))


def test_a_model_of_vectors_takes_vectors_alone_and_one_of_images_images(tmp_path):
    Image.fromarray(COLOUR[0]).save(tmp_path / "one.png")
    _, layout = first(RANDOM.normal(size=(6, 3)))
    for given in (GREY, from_arrays(GREY), tmp_path, [tmp_path / "one.png"]):
        with pytest.raises(InputError, match="fitted on feature vectors, and X holds images"):
            more(given, layout, columns=3)
    with pytest.raises(ValueError, match="X has 4 features, but Learner is expecting 3 features"):
        more(np.zeros((2, 4)), layout, columns=3)
    _, layout = first(GREY)
    with pytest.raises(InputError, match="fitted on images: give N x H x W x C"):
        more(GREY.reshape(6, 64), layout)
    np.save(tmp_path / "rows.npy", ROWS)
    for given in (from_vectors(ROWS), tmp_path / "rows.npy"):
        with pytest.raises(InputError, match=r"holds feature vectors.*: give images"):
            more(given, layout)


@pytest.mark.parametrize(
    ("wanted", "preset", "message"),
    [
        ({"value_range": (0, 16)}, None, r"^value_range=\(0, 16\) is for images.*image_shape"),
        ({}, "digits", "^preset='digits' is for images, and rows of X are feature vectors"),
        ({"image_shape": (8, 8)}, None, "is for flat rows in an array"),
    ],
)
def test_what_speaks_of_images_is_refused_beside_vectors(wanted, preset, message):
    with pytest.raises(InputError, match=message):
        require_meaning(Wanted(**wanted), preset)
    require_meaning(Wanted())


def test_pixels_that_are_all_nan_are_told_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="X has NaN or infinite values, first in row 0"):
            first(np.full((6, 8, 8), np.nan))


def with_nan(images) -> np.ndarray:
    images = images / 255
    images[3].flat[5] = np.nan
    return images


@pytest.mark.parametrize(
    ("given", "wanted", "message"),
    [
        (with_nan(GREY), {}, "X has NaN or infinite values, first in row 3"),
        (with_nan(GREY), {"value_range": (0, 1)}, "NaN or infinite values, first in row 3"),
        (with_nan(GREY).reshape(6, 64), {}, "NaN, infinite or missing values in 1 of 6 rows"),
        (
            with_nan(GREY).reshape(6, 64),
            {"image_shape": (8, 8)},
            "NaN or infinite values, first in row 3",
        ),
        (np.ones((6, 4)), {}, "the 6 rows of X are all equal"),
        ((GREY[0], GREY[1]), {}, "X is a tuple of two matrices: give two copies of the same"),
        (GREY[0, 0], {}, "X has shape (8,): give images or rows"),
        (GREY[None, None], {}, "X has shape"),
        (GREY.reshape(6, 64), {"image_shape": (8, 9)}, "has 72 values, but X has 64 columns"),
        (GREY.reshape(6, 64), {"image_shape": (64,)}, "is no image: give (H, W)"),
        (GREY, {"image_shape": (8, 9)}, "drop image_shape, which is for flat rows"),
        (GREY - 300.0, {}, "X has values from"),
        ([GREY[0], COLOUR[0]], {}, "X has images of different shapes"),
        (RANDOM.integers(0, 9, (6, 4, 4)), {}, "at least 8 x 8"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(given, wanted, message):
    said = refused(given, **wanted)
    assert message in said
    assert "\n" not in said
