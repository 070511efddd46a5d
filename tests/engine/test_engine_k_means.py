import numpy as np

from dcdc.engine.k_means import some_rows
from dcdc.metrics.directions import directions


def test_directions_do_not_know_where_codes_lie_nor_how_far():
    codes = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    found = directions(codes)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(directions(7 * codes + 3), found, atol=1e-4)
    same = np.ones((5, 2), np.float32)
    assert np.isfinite(directions(same)).all()


def test_some_rows_rise_and_are_all_where_there_are_few():
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(some_rows(5, 5, random), np.arange(5))
    found = some_rows(100, 7, random)
    assert len(found) == 7
    assert (np.diff(found) > 0).all()
