import numpy as np
import pytest

from dcdc.data.mapped import gather_rows, gather_spread, mapping_of, release_pages


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10_000))
    return tmp_path / "a.npy"


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_map_is_found_below_views_and_reads_the_same_after_its_pages_went(file, mode):
    mapped = np.load(file, mmap_mode=mode)
    view = np.asarray(mapped)[::2].reshape(50, -1).T
    assert mapping_of(view) is mapped._mmap
    before = view.copy()
    release_pages(view)
    assert np.array_equal(view, before)


def test_changes_to_a_copy_on_write_map_are_not_undone(file):
    copied = np.load(file, mmap_mode="c")
    copied[:] = 7
    release_pages(copied)
    assert (copied == 7).all()


def test_plain_arrays_have_no_map():
    assert mapping_of(np.arange(5)[1:]) is None
    release_pages(np.arange(5))


def test_rows_are_gathered_in_order_mapped_or_not(file):
    rows = np.random.default_rng(0).integers(0, 2500, 100)  # more than are read at a time
    for array in (np.load(file, mmap_mode="r"), np.load(file)):
        views = array.reshape(2500, 2, 2).transpose(0, 2, 1)
        found = gather_rows(views, rows)
        assert np.array_equal(found, views[rows])
        assert not np.shares_memory(found, array)


@pytest.mark.parametrize(("n_rows", "n_expected"), [(3, 3), (10, 5), (11, 6)])
def test_some_rows_are_spread_over_all(n_rows, n_expected):
    array = np.arange(n_rows * 2).reshape(n_rows, 2)
    parts = list(gather_spread(array, about=4, at_a_time=2))
    assert max(map(len, parts)) <= 2
    rows = np.concatenate(parts)
    assert len(rows) == n_expected
    assert np.array_equal(rows, array[:: max(1, n_rows // 4)])
