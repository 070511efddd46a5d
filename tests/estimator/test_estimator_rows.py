import numpy as np
import pytest

from dcdc.estimator.rows import as_images, fitted_columns


def test_each_value_is_a_square_as_grey_as_it_lies_in_its_column():
    rows = np.array([[0.0, -5.0, 7.0], [2.0, 5.0, 7.0], [1.0, 0.0, 7.0]])
    images = as_images(rows, fitted_columns(rows))
    assert images.shape == (3, 8, 8)
    assert images.dtype == np.uint8
    assert (images[1, :4, :4] == 255).all()
    assert (images[2, :4, 4:] == 128).all()
    assert not images[0].any()
    assert not images[:, 4:].any()  # a constant column, and a square that no column fills


@pytest.mark.parametrize(("n_columns", "side"), [(1, 8), (2, 8), (10, 8), (30, 12), (70, 9)])
def test_the_grid_has_at_least_eight_pixels_a_side(n_columns, side):
    rows = np.random.default_rng(0).normal(size=(4, n_columns))
    assert as_images(rows, fitted_columns(rows)).shape == (4, side, side)


def test_new_rows_are_seen_in_the_range_of_the_fitted_ones():
    columns = fitted_columns(np.array([[0.0, 10.0], [1.0, 20.0]]))
    images = as_images(np.array([[0.5, 99.0], [-3.0, 15.0]]), columns)
    assert (images[0, 0, 0], images[0, 0, 7]) == (128, 255)
    assert (images[1, 0, 0], images[1, 0, 7]) == (0, 128)


def test_the_largest_floats_do_not_overflow():
    most = np.finfo(np.float64).max
    rows = np.array([[-most], [0.0], [most]])
    with np.errstate(all="raise"):
        assert as_images(rows, fitted_columns(rows))[:, 0, 0].tolist() == [0, 128, 255]
