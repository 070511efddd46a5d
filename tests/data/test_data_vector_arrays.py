from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import VectorSet, from_vectors, vector_rows
from dcdc.errors import InputError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(12, 5)).astype(np.float32)


def refused(vectors, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        from_vectors(vectors, **options)
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def with_bad(rows, *at, value=np.nan):
    bad = rows.copy()
    bad[list(at), -1] = value
    return bad


def test_float16_and_float32_are_kept_without_a_copy():
    for dtype in (np.float16, np.float32):
        rows = ROWS.astype(dtype)
        found = from_vectors(rows)
        assert np.shares_memory(found.vectors, rows)
        assert found.vectors.dtype == dtype
        assert (found.n_images, found.n_features, found.n_classes) == (12, 5, None)
        assert found.names[:2] == ("image-0000", "image-0001")
        assert found.copies is found.targets is found.files is None
        assert found.skipped == ()


@pytest.mark.parametrize("dtype", [np.float64, ">f4", np.int64, np.uint8, np.longdouble])
def test_other_numbers_become_float32(dtype):
    rows = (10 * np.abs(ROWS)).astype(dtype)
    found = from_vectors(rows).vectors
    assert found.dtype == np.float32
    assert found.dtype.isnative
    assert np.array_equal(found, rows.astype(np.float32))


def test_lists_booleans_tensors_and_any_order_of_memory():
    assert from_vectors([[1, 2], [3, 4.5]]).vectors.tolist() == [[1, 2], [3, 4.5]]
    assert from_vectors([[True, False], [True, True]]).vectors.tolist() == [[1, 0], [1, 1]]
    assert np.array_equal(from_vectors(torch.from_numpy(ROWS)).vectors, ROWS)
    for rows in (np.asfortranarray(ROWS), ROWS[::-1], ROWS[:, ::2]):
        found = from_vectors(rows).vectors
        assert found.flags.c_contiguous
        assert np.array_equal(found, rows)


def test_targets_names_copies_and_files_go_with_the_rows():
    names = [f"n{row}" for row in range(12)]
    files = [Path("photos") / f"{row}.jpg" for row in range(12)]
    found = from_vectors(ROWS, ["b", "a"] * 6, names, ROWS.astype(np.float64) + 1, files)
    assert found.class_names == ("a", "b")
    assert found.targets.tolist() == [1, 0] * 6
    assert list(found.names) == names
    assert found.copies.dtype == np.float32
    assert np.allclose(found.copies, ROWS + 1)
    assert list(found.files) == files
    assert found.files[2:4] == tuple(files[2:4])
    assert list(from_vectors(ROWS, files=files).names) == list(map(str, files))
    one_file = from_vectors(ROWS, files=["same.jpg"] * 12)
    assert one_file.names[11] == "image-0011"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_not_finite_are_counted_and_the_first_is_named(dtype, value):
    told = refused(with_bad(ROWS, 3, 7, 8, value=value).astype(dtype), where="X")
    assert told == (
        "X has NaN, infinite or missing values in 3 of 12 rows, first in row 3: replace them, "
        "leave these rows out, or use --on-bad skip"
    )


def test_a_float64_beyond_float32_is_told_as_infinite():
    assert "1 of 2 rows, first in row 1" in refused([[1.0, 2.0], [1e300, 1.0]])


def test_numbers_whose_squares_are_beyond_float32_are_told_as_infinite():
    rows = np.float32([[1.0, 2.0], [1e30, 1.0]])
    assert np.isfinite(rows).all()
    assert "1 of 2 rows, first in row 1" in refused(rows)
    largest = np.full((2, 2), np.finfo(np.float16).max, np.float16)
    assert from_vectors(largest, may_be_equal=True).n_images == 2


def test_every_block_is_looked_at(monkeypatch):
    monkeypatch.setattr(vector_rows, "_BLOCK_BYTES", 2 * ROWS[0].nbytes)
    assert "2 of 12 rows, first in row 5" in refused(with_bad(ROWS, 5, 11))
    found = from_vectors(with_bad(ROWS, 5, 11).astype(np.float64), on_bad="skip")
    assert np.array_equal(found.vectors, np.delete(ROWS, [5, 11], axis=0))


def test_bad_rows_are_left_out_where_that_is_asked_for():
    found = from_vectors(
        with_bad(ROWS, 0, 3),
        ["lost", *"abcabcabcab"],
        copies=with_bad(ROWS + 1, 3, 4),
        files=[f"{row}.png" for row in range(12)],
        on_bad="skip",
    )
    kept = [1, 2, *range(5, 12)]
    assert np.array_equal(found.vectors, ROWS[kept])
    assert np.array_equal(found.copies, (ROWS + 1)[kept])
    assert [skipped.name for skipped in found.skipped] == ["0.png", "3.png", "4.png"]
    assert "NaN" in found.skipped[0].reason
    assert found.class_names == ("a", "b", "c")
    assert [found.class_names[code] for code in found.targets[:3]] == ["a", "b", "b"]
    assert [str(file) for file in found.files[:3]] == ["1.png", "2.png", "5.png"]
    assert list(found.names) == list(map(str, found.files))
    assert "none of the 12 rows" in refused(np.full((12, 5), np.nan), on_bad="skip")
    assert "on_bad is 'drop'" in refused(ROWS, on_bad="drop")


def test_constant_columns_are_fine_and_equal_rows_are_not():
    rows = ROWS.copy()
    rows[:, 1:] = 2
    assert from_vectors(rows).n_features == 5
    equal = np.repeat(ROWS[:1], 4, axis=0)
    assert "the 4 rows of X are all equal" in refused(equal, where="X")
    assert from_vectors(equal, may_be_equal=True).n_images == 4
    equal[3, 4] += 1
    assert from_vectors(equal).n_images == 4


def test_one_row_is_refused_only_where_more_are_asked_for():
    assert from_vectors(ROWS[:1]).n_images == 1
    assert "X has 1 row: give at least 2" in refused(ROWS[:1], where="X", at_least=2)
    assert "has 3 rows: give at least 4" in refused(ROWS[:3], at_least=4)
    left = with_bad(ROWS[:3], 0, 1)
    assert "1 row: give at least 2" in refused(left, at_least=2, on_bad="skip")


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        (ROWS[0], "has shape (5,): give feature vectors as N x D"),
        (ROWS[None], "has shape (1, 12, 5)"),
        (np.float32(3), "has shape ()"),
        (ROWS[:0], "(0, 5), which holds no row"),
        (ROWS[:, :0], "(12, 0), which holds no feature"),
        ([], "(0,)"),
        ([["a", "b"]], "has type <U1: give floats or integers"),
        (ROWS.astype(complex), "complex"),
        (np.array([[{}, 1]], object), "type object"),
        ([[1, 2], [3]], "cannot be read as one array"),
        (torch.ones(2, 2, requires_grad=True), "cannot be read as one array"),
        (sparse.csr_matrix(ROWS), "sparse matrix: give X.toarray()"),
    ],
)
def test_what_is_no_matrix_is_refused_by_name(vectors, words):
    told = refused(vectors, where="X")
    assert told.startswith("X ")
    assert words in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": [0, 1]}, "12 rows but 2 targets"),
        ({"names": ["a"]}, "12 rows but 1 names"),
        ({"names": "twelve chars"}, "the names of vectors are no flat list"),
        ({"names": np.array("a")}, "the names of vectors are no flat list"),
        ({"files": np.array([["a"]] * 12)}, "the files of vectors are no flat list"),
        ({"files": ["a"] * 13}, "12 rows but 13 files"),
        ({"copies": ROWS[:11]}, "(12, 5) but its copies have (11, 5)"),
        ({"copies": ROWS[0]}, "the copies of vectors has shape (5,)"),
        ({"copies": with_bad(ROWS, 2)}, "the copies of vectors has NaN"),
        ({"targets": [0.5] * 12}, "all integers or all strings"),
    ],
)
def test_what_does_not_go_with_the_rows_is_refused(options, words):
    assert words in refused(ROWS, **options)


def test_a_set_holds_to_what_it_says():
    names = [""] * 12
    for broken in (
        {"vectors": ROWS.astype(np.float64)},
        {"vectors": ROWS[0]},
        {"vectors": ROWS[:, :0]},
        {"names": names[1:]},
        {"targets": np.zeros(12, np.int64)},
        {"targets": np.ones(12, np.int64), "class_names": ("a",)},
        {"targets": np.zeros(12, np.int32), "class_names": ("a",)},
        {"copies": ROWS[1:]},
        {"copies": ROWS.astype(np.float64)},
        {"files": [Path("a")]},
    ):
        with pytest.raises(AssertionError):
            VectorSet(**({"vectors": ROWS, "names": names} | broken))
