import io
import os
import zipfile

import numpy as np
import pytest

from dcdc.runtime.atomic_files import write_arrays
from dcdc.stored.arrays import Array, StoredArrays
from dcdc.stored.reading import DamagedFileError

ARRAYS = {"rows": np.arange(5), "half": np.ones((5, 3), np.float16), "t-SNE": np.zeros((0, 2))}
SCHEMA = {
    "rows": Array("i", ("n",)),
    "half": Array("f", ("n", "D")),
    "t-SNE": Array("f", ("m", 2), is_needed=False),
}
STORED = StoredArrays("arrays.npz", SCHEMA, "remove it", most_bytes=2**20)


def test_arrays_come_back_and_the_same_arrays_are_the_same_bytes(tmp_path):
    for name in ("one.npz", "two.npz"):
        write_arrays(tmp_path / name, ARRAYS)
    found = STORED.read(tmp_path / "one.npz")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.npz", "two.npz"]


def test_the_order_of_columns_in_the_file_changes_nothing(tmp_path):
    half = np.asfortranarray(np.arange(15, dtype=np.float16).reshape(5, 3))
    write_arrays(tmp_path / "arrays.npz", {**ARRAYS, "half": half})
    assert np.array_equal(STORED.read(tmp_path / "arrays.npz")["half"], half)


def test_no_flipped_bit_and_no_torn_file_brings_other_values(tmp_path):
    file = tmp_path / "arrays.npz"
    write_arrays(file, ARRAYS)
    whole = file.read_bytes()
    torn = [whole[:n] for n in range(0, len(whole), 31)] + [b"no zip at all"]
    for at in range(0, 8 * len(whole), 23):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        torn.append(bytes(flipped))
    refusals = []
    for content in torn:
        file.write_bytes(content)
        try:
            found = STORED.read(file)
        except DamagedFileError as told:
            refusals.append(str(told))
        else:  # a date, say; or the name of the array that may be left out
            assert all(np.array_equal(found[name], ARRAYS[name]) for name in found)
    assert len(refusals) > len(torn) / 2
    for told in refusals:
        assert len(told.splitlines()) == 1
        assert str(file) in told
        assert told.endswith(": remove it")


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"rows": np.arange(5)}, "half is missing"),
        ({**ARRAYS, "half": np.ones((4, 3))}, r"half has shape \(4, 3\).*with 5 for n"),
        ({**ARRAYS, "half": np.ones(5)}, r"half has shape \(5,\), it should be n x D"),
        ({**ARRAYS, "rows": np.ones(5)}, "rows is of type float64"),
        ({**ARRAYS, "half": np.full((5, 3), np.nan)}, "half has values that are not finite"),
        ({**ARRAYS, "t-SNE": np.zeros((4, 3))}, "t-SNE has shape"),
        ({**ARRAYS, "rows": np.array([{"a": 1}] * 5, object)}, "rows is of type object"),
    ],
)
def test_what_does_not_fit_the_schema_is_named(tmp_path, arrays, told):
    np.savez(tmp_path / "arrays.npz", **arrays)
    with pytest.raises(DamagedFileError, match=told):
        STORED.read(tmp_path / "arrays.npz")


def test_sides_that_are_known_are_held_against(tmp_path):
    write_arrays(tmp_path / "arrays.npz", ARRAYS)
    assert STORED.read(tmp_path / "arrays.npz", D=3)["half"].shape == (5, 3)
    with pytest.raises(DamagedFileError, match="with 4 for D"):
        STORED.read(tmp_path / "arrays.npz", D=4)


def npz(tmp_path, header: str, content: bytes = b""):
    """`rows` by a header of one's own."""
    member = io.BytesIO()
    member.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    member.write(content)
    with zipfile.ZipFile(tmp_path / "arrays.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.npy", member.getvalue())
    return tmp_path / "arrays.npz"


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': " + "(" * 500 + ")" * 500 + "}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{" * 3000,
        "",
    ],
)
def test_headers_that_declare_nonsense_are_told(tmp_path, header):
    with pytest.raises(DamagedFileError) as told:
        STORED.read(npz(tmp_path, header))
    assert len(str(told.value).splitlines()) == 1


def test_a_bomb_is_not_unpacked(tmp_path):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (5,)}"
    with pytest.raises(DamagedFileError, match="longer than it says"):
        STORED.read(npz(tmp_path, header, bytes(5 * 2**20)))
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (655360,)}"
    with pytest.raises(DamagedFileError, match="declares 5,242,880 bytes"):
        STORED.read(npz(tmp_path, header, bytes(5 * 2**20)))


def test_only_a_regular_file_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place, told in (
        (tmp_path / "pipe", "is a pipe, not a file"),
        (tmp_path, "is a folder, not a file"),
        ("/dev/zero", "is a device, not a file"),
        (tmp_path / "missing", "No such file"),
    ):
        with pytest.raises(DamagedFileError, match=told):
            STORED.read(place)
