import gzip
import os
import struct
import tracemalloc

import numpy as np
import pytest

from dcdc.data.benchmarks.idx import FASHION_CLASSES, load_idx_digits
from dcdc.errors import InputError

STEMS = {"train": "train", "test": "t10k"}
LABELS = {"train": [5, 0, 9], "test": [1, 1]}


def pictures(split, shape=(28, 28)):
    draw = np.random.default_rng(len(split))
    return draw.integers(0, 256, (len(LABELS[split]), *shape), np.uint8)


def idx(values, magic=None):
    values = np.asarray(values, np.uint8)
    start = 0x800 + values.ndim if magic is None else magic
    return struct.pack(f">I{values.ndim}I", start, *values.shape) + values.tobytes()


def write(folder, mark="-", suffix="", shape=(28, 28)):
    for split, stem in STEMS.items():
        for what, content in (
            (f"images{mark}idx3", idx(pictures(split, shape))),
            (f"labels{mark}idx1", idx(LABELS[split])),
        ):
            path = folder / f"{stem}-{what}-ubyte{suffix}"
            path.write_bytes(gzip.compress(content) if suffix else content)


def refused(*arguments, **options):
    with pytest.raises(InputError) as caught:
        load_idx_digits(*arguments, **options)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("mark", ["-", "."])
@pytest.mark.parametrize("splits", [("train",), ("train", "test"), ("test", "train")])
def test_images_and_labels_in_the_order_of_the_splits(tmp_path, mark, suffix, splits):
    write(tmp_path, mark, suffix)
    found = load_idx_digits(tmp_path, splits)
    assert np.array_equal(found.images[..., 0], np.concatenate([pictures(s) for s in splits]))
    assert found.targets.tolist() == [label for split in splits for label in LABELS[split]]
    assert found.class_names == tuple("0123456789")
    assert found.names[0] == f"{splits[0]}/00000"
    assert len(set(found.names)) == found.n_images


def test_other_class_names_keep_their_order(tmp_path):
    write(tmp_path)
    found = load_idx_digits(tmp_path, ("train",), class_names=FASHION_CLASSES)
    assert [found.class_names[code] for code in found.targets] == [
        "Sandal",
        "T-shirt/top",
        "Ankle boot",
    ]
    message = refused(tmp_path, ("train",), class_names=FASHION_CLASSES[:9])
    assert "label 9, not one from 0 to 8" in message


def test_a_plain_file_wins_over_a_gzipped_one(tmp_path):
    write(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(b"damaged")
    assert load_idx_digits(tmp_path, ("test",)).n_images == 2


def test_another_size(tmp_path):
    write(tmp_path)
    assert load_idx_digits(tmp_path, ("test",), 32).image_shape == (32, 32, 1)
    assert "size is 4" in refused(tmp_path, ("test",), 4)


def test_images_that_are_too_small_or_of_two_sizes(tmp_path):
    write(tmp_path, shape=(4, 4))
    assert "4 x 4 pixels" in refused(tmp_path, ("test",))
    assert load_idx_digits(tmp_path, ("test",), 8).side == 8
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(pictures("train")))
    assert "different sizes" in refused(tmp_path, ("train", "test"), 8)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("what", ["images-idx3", "labels-idx1"])
class TestFaults:
    def message(self, tmp_path, what, suffix, content):
        write(tmp_path, suffix=suffix)
        path = tmp_path / f"t10k-{what}-ubyte{suffix}"
        path.write_bytes(gzip.compress(content) if suffix else content)
        message = refused(tmp_path, ("test",))
        assert "get it again" in message
        assert str(path) in message
        return message

    def good(self, what):
        return idx(pictures("test") if what == "images-idx3" else LABELS["test"])

    @pytest.mark.parametrize("length", [0, 3, 7, -1])
    def test_cut_before_it_was_compressed(self, tmp_path, what, suffix, length):
        message = self.message(tmp_path, what, suffix, self.good(what)[:length])
        assert "declares" in message or "start as an IDX file" in message

    def test_too_long(self, tmp_path, what, suffix):
        assert "declares" in self.message(tmp_path, what, suffix, self.good(what) + b"\0")

    @pytest.mark.parametrize("magic", [0, 0x802, 0xD03, 0x01000803, 0x03080000])
    def test_another_magic_number(self, tmp_path, what, suffix, magic):
        content = struct.pack(">I", magic) + self.good(what)[4:]
        assert "start as an IDX file" in self.message(tmp_path, what, suffix, content)

    @pytest.mark.parametrize("n_images", [0, 2**32 - 1, 2**31])
    def test_an_absurd_number_of_images_is_not_allocated(self, tmp_path, what, suffix, n_images):
        good = self.good(what)
        tracemalloc.start()
        try:
            content = good[:4] + struct.pack(">I", n_images) + good[8:]
            assert "cannot be" in self.message(tmp_path, what, suffix, content)
            assert tracemalloc.get_traced_memory()[1] < 2**22
        finally:
            tracemalloc.stop()

    def test_missing(self, tmp_path, what, suffix):
        write(tmp_path, suffix=suffix)
        (tmp_path / f"t10k-{what}-ubyte{suffix}").unlink()
        message = refused(tmp_path, ("test",))
        assert f"{tmp_path} lacks t10k-{what}-ubyte" in message

    def test_one_image_or_label_less(self, tmp_path, what, suffix):
        fewer = idx(pictures("test")[:1] if what == "images-idx3" else LABELS["test"][:1])
        write(tmp_path, suffix=suffix)
        path = tmp_path / f"t10k-{what}-ubyte{suffix}"
        path.write_bytes(gzip.compress(fewer) if suffix else fewer)
        assert "labels for" in refused(tmp_path, ("test",))


def test_a_plain_file_is_measured_before_it_is_read(tmp_path):
    write(tmp_path)
    with (tmp_path / "t10k-images-idx3-ubyte").open("r+b") as file:
        file.write(struct.pack(">4I", 0x803, 2**18, 28, 28))  # 205 MB
    tracemalloc.start()
    try:
        assert "262144 x 28 x 28 bytes that it declares" in refused(tmp_path, ("test",))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_bomb_is_not_unpacked(tmp_path):
    write(tmp_path, suffix=".gz")
    bomb = gzip.compress(idx(pictures("test")) + bytes(2**26))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(bomb)
    tracemalloc.start()
    try:
        assert "declares" in refused(tmp_path, ("test",))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("position", [0, 2, 10, 40, -6, -2])
def test_a_damaged_gzip_file(tmp_path, position):
    write(tmp_path, suffix=".gz")
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)
    message = refused(tmp_path, ("test",))
    assert str(path) in message


@pytest.mark.parametrize("length", [0, 5, 30, -9, -1])
def test_a_gzip_file_that_was_cut(tmp_path, length):
    write(tmp_path, suffix=".gz")
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    os.truncate(path, length if length >= 0 else path.stat().st_size + length)
    assert str(path) in refused(tmp_path, ("test",))


@pytest.mark.parametrize("splits", [(), ("val",), ("test", "test")])
def test_wrong_splits(tmp_path, splits):
    write(tmp_path)
    assert "train" in refused(tmp_path, splits)
