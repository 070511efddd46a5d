import numpy as np
import pytest

from dcdc.runtime.array_files import DamagedArraysError, read_arrays, write_arrays

ARRAYS = {"rows": np.arange(5), "half": np.ones((2, 3), np.float16), "t-SNE": np.zeros((0, 2))}


def test_arrays_come_back_and_the_same_arrays_are_the_same_bytes(tmp_path):
    for name in ("one.npz", "two.npz"):
        write_arrays(tmp_path / name, ARRAYS)
    found = read_arrays(tmp_path / "one.npz")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.npz", "two.npz"]


def test_every_torn_file_is_told_in_one_line(tmp_path):
    file = tmp_path / "arrays.npz"
    write_arrays(file, ARRAYS)
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[60] ^= 255
    torn = [b"", b"PK", whole[:-1], whole[: len(whole) // 2], b"no zip at all", bytes(flipped)]
    for content in torn:
        file.write_bytes(content)
        with pytest.raises(DamagedArraysError) as told:
            read_arrays(file)
        assert len(str(told.value).splitlines()) == 1
    with pytest.raises(DamagedArraysError):
        read_arrays(tmp_path / "missing.npz")
    np.save(tmp_path / "single.npy", np.arange(3))
    with pytest.raises(DamagedArraysError, match=r"not an \.npz"):
        read_arrays(tmp_path / "single.npy")


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", rows=np.array([{"a": 1}], object))
    with pytest.raises(DamagedArraysError, match="pickle"):
        read_arrays(tmp_path / "evil.npz")
