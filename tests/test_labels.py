import numpy as np
import pytest

from dcdc.data import encode_targets
from dcdc.errors import InputError


@pytest.mark.parametrize(
    ("targets", "codes", "class_names"),
    [
        ([10, 9, 10, -1], [2, 1, 2, 0], ("-1", "9", "10")),
        (np.array([200, 3], np.uint8), [1, 0], ("3", "200")),
        (np.array([2**63 + 5, 1], np.uint64), [1, 0], ("1", str(2**63 + 5))),
        (np.array([True, False]), [1, 0], ("False", "True")),
        (["dog", "cat", "dog"], [1, 0, 1], ("cat", "dog")),
        (["10", "9"], [0, 1], ("10", "9")),
        (np.array(["ü", "a"], object), [1, 0], ("a", "ü")),
        (np.array([7, 3], object), [1, 0], ("3", "7")),
        (np.array([b"\xc3\xbc", b"a"]), [1, 0], ("a", "ü")),
    ],
)
def test_any_integer_or_string_type_becomes_sorted_codes(targets, codes, class_names):
    found, names = encode_targets(targets)
    assert found.dtype == np.int64
    assert found.tolist() == codes
    assert names == class_names


@pytest.mark.parametrize(
    ("targets", "word"),
    [
        ([0.0, float("nan")], "NaN at position 1"),
        ([0.5, 1.0], "float64"),
        (["cat", float("nan")], "mixed or missing"),
        (np.array(["cat", None], object), "mixed or missing"),
        ([1, "cat"], "mixed or missing"),
        ([[0], [1]], "shape (2, 1)"),
        ([[0], [1, 2]], "cannot be read"),
        (np.array([b"\xff"]), "cannot be read"),
        ([1j], "complex"),
    ],
)
def test_what_is_no_label_is_refused_by_name(targets, word):
    with pytest.raises(InputError) as caught:
        encode_targets(targets, "the truth")
    assert str(caught.value).startswith("the truth ")
    assert word in str(caught.value)
