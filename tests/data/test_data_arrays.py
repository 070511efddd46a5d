import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dcdc.data import arrays, from_arrays, load_array_file
from dcdc.errors import InputError

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (5, 12, 12, 3), np.uint8)
GREY = COLOUR[..., 0].copy()


def refused(*args, **options):
    with pytest.raises(InputError) as caught:
        from_arrays(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_uint8_is_kept_without_a_copy_in_every_layout():
    for given in (COLOUR, np.moveaxis(COLOUR, 3, 1).copy(), GREY, GREY[:, None], GREY[..., None]):
        found = from_arrays(given).images
        assert np.shares_memory(found, given)
        truth = COLOUR if 3 in given.shape[1:] else GREY[..., None]
        assert np.array_equal(found, truth)


def test_channels_last_wins_where_both_readings_fit():
    both = RNG.integers(0, 256, (2, 3, 9, 1), np.uint8)
    assert "3 x 9 pixels" in refused(both)
    assert from_arrays(both, size=8).channels == 1


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, ">i4", np.uint64])
def test_other_integers_are_taken_as_they_are(dtype):
    small = GREY // 2
    assert np.array_equal(from_arrays(small.astype(dtype)).images[..., 0], small)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_floats_up_to_1_are_scaled_and_floats_up_to_255_rounded(dtype):
    scaled = (GREY / 255).astype(dtype)
    assert np.array_equal(from_arrays(scaled).images[..., 0], GREY)
    rounded = (GREY.clip(1, 254) + RNG.uniform(-0.3, 0.3, GREY.shape)).astype(dtype)
    assert np.array_equal(from_arrays(rounded).images[..., 0], GREY.clip(1, 254))


def test_the_ends_of_the_ranges_belong_to_them():
    for dtype in (np.int64, np.float32):
        whole = np.array([0, 2, 255], dtype).repeat(64).reshape(3, 8, 8)
        assert from_arrays(whole).images[:, 0, 0, 0].tolist() == [0, 2, 255]
        assert from_arrays(whole[:2]).images[:, 0, 0, 0].tolist() == [0, 2]
    assert from_arrays(np.ones((1, 8, 8))).images.max() == 255
    assert from_arrays(np.ones((1, 8, 8), int)).images.max() == 1


def test_booleans_become_black_and_white():
    assert np.array_equal(from_arrays(GREY > 99).images[..., 0], np.where(GREY > 99, 255, 0))


def test_conversion_goes_block_by_block_over_every_image(monkeypatch):
    monkeypatch.setattr(arrays, "_BLOCK_BYTES", 2 * 12 * 12 * 8)  # two images, then two, then one
    scaled = GREY / 255
    assert np.array_equal(from_arrays(scaled).images[..., 0], GREY)
    scaled[4, 3, 2] = np.nan
    assert "first in image 4" in refused(scaled)
    scaled[3, 3, 2] = -np.inf
    assert "first in image 3" in refused(scaled)
    scaled[3:] = 0
    scaled[4, 0, 0] = 300
    assert "from 0 to 300" in refused(scaled)


def test_conversion_needs_little_more_memory_than_its_result(monkeypatch):
    monkeypatch.setattr(arrays, "_BLOCK_BYTES", 2**16)
    floats = np.zeros((2000, 32, 32), np.float32)
    tracemalloc.start()
    found = from_arrays(floats)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < found.images.nbytes + 2**20  # all at once would be 8 bytes a pixel


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((12, 12)), ["shape (12, 12)", "N x H x W"]),
        (np.zeros((1, 1, 12, 12, 3)), ["shape (1, 1, 12, 12, 3)"]),
        (np.zeros((0, 12, 12)), ["no image"]),
        (np.zeros((4, 0, 12, 3)), ["no image"]),
        (np.zeros((8, 9, 1), np.uint8), ["one image", "images[None]"]),
        (np.zeros((9, 8, 3), np.uint8), ["one image", "images[None]"]),
        (np.zeros((9, 9, 4), np.uint8), ["one image", "images[None]"]),
        (np.zeros((4, 12, 12, 4), np.uint8), ["alpha", "images[..., :3]"]),
        (np.zeros((4, 4, 12, 12), np.uint8), ["alpha", "images[:, :3]"]),
        (np.zeros((4, 12, 12, 5), np.uint8), ["shape (4, 12, 12, 5)"]),
        (np.zeros((4, 7, 12), np.uint8), ["7 x 12", "8 x 8"]),
        (np.full((4, 12, 12), 256), ["256", "0..255"]),
        (np.full((4, 12, 12), -1), ["-1"]),
        (np.full((4, 12, 12), -0.5), ["-0.5"]),
        (np.full((4, 12, 12), 255.5), ["255.5"]),
        (np.full((4, 12, 12), 1.01), ["1.01", "clip"]),
        (np.zeros((4, 12, 12), complex), ["complex128"]),
        (np.zeros((4, 12, 12), object), ["object"]),
        (np.full((4, 12, 12), "a"), ["<U1"]),
        ([np.zeros((8, 8)), np.zeros((9, 9))], ["equal size"]),
    ],
)
def test_arrays_that_are_no_images_are_refused_by_name(images, words):
    message = refused(images, where="photos.npy")
    assert message.startswith("photos.npy ")
    assert [word for word in words if word not in message] == []


def test_images_that_are_not_square_keep_their_centre():
    wide = RNG.integers(0, 256, (2, 10, 16, 3), np.uint8)
    assert np.array_equal(from_arrays(wide).images, wide[:, :, 3:13])
    tall = wide.transpose(0, 2, 1, 3)
    assert np.array_equal(from_arrays(tall).images, tall[:, 3:13])


def test_a_size_resizes_and_may_enlarge_tiny_images():
    halves = np.zeros((1, 16, 16), np.uint8)
    halves[:, 8:] = 200
    small = from_arrays(halves, size=8).images[0, ..., 0]
    assert (small[:3] == 0).all()
    assert (small[5:] == 200).all()
    assert from_arrays(np.zeros((1, 4, 4), np.uint8), size=8).side == 8
    assert "size is 7" in refused(COLOUR, size=7)


def test_targets_and_names_go_with_the_images():
    found = from_arrays(COLOUR, ["b", "a", "b", "a", "a"], list("vwxyz"))
    assert found.targets.tolist() == [1, 0, 1, 0, 0]
    assert found.class_names == ("a", "b")
    assert list(found.names) == list("vwxyz")
    assert from_arrays(COLOUR).targets is None
    assert from_arrays(COLOUR).names[4] == "image-0004"
    assert "5 images but 4 targets" in refused(COLOUR, [0, 1, 0, 1])
    assert "5 images but 1 names" in refused(COLOUR, names=["a"])
    assert "the targets of images" in refused(COLOUR, [0, 1, 0, 1, 0.5])


@pytest.mark.parametrize("image_key", ["images", "x", "data", "arr_0"])
@pytest.mark.parametrize("target_key", ["targets", "labels", "label", "y", None])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_its_keys(tmp_path, image_key, target_key, save):
    targets = [3, 1, 1, 3, 2]
    save(tmp_path / "a.npz", **{image_key: COLOUR, **({target_key: targets} if target_key else {})})
    found = load_array_file(tmp_path / "a.npz")
    assert np.array_equal(found.images, COLOUR)
    assert found.class_names == (("1", "2", "3") if target_key else ())


def test_npz_first_key_wins_and_an_unknown_key_is_listed(tmp_path):
    np.savez(tmp_path / "a.npz", images=COLOUR, x=COLOUR[:1], targets=range(5), y=range(1))
    assert load_array_file(tmp_path / "a.npz").n_classes == 5
    np.savez(tmp_path / "b.npz", x_train=COLOUR, y_train=range(5))
    with pytest.raises(
        InputError, match="holds x_train, y_train: name the images images, x, data or arr_0"
    ):
        load_array_file(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz")
    with pytest.raises(InputError, match="no array"):
        load_array_file(tmp_path / "c.npz")


def mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_a_big_npy_is_mapped_and_a_small_one_read(tmp_path, monkeypatch):
    path = tmp_path / "a.npy"
    np.save(path, COLOUR)
    small = load_array_file(path)
    assert not mapped(small.images)
    monkeypatch.setattr(arrays, "MAP_ABOVE_BYTES", COLOUR.nbytes - 1)
    big = load_array_file(path)
    assert mapped(big.images)
    assert np.array_equal(small.images, COLOUR)
    assert np.array_equal(big.images, COLOUR)


def write_pickled(path):
    np.save(path, np.array([{"a": 1}], object))


def write_pickled_in_npz(path):
    np.savez(path.open("wb"), images=np.array([{"a": 1}], object))


def write_cut_npy(path):
    np.save(path, COLOUR)
    path.write_bytes(path.read_bytes()[:-100])


def write_cut_header(path):
    np.save(path, COLOUR)
    path.write_bytes(path.read_bytes()[:40])


def write_cut_npz(path):
    np.savez_compressed(path.open("wb"), images=COLOUR)
    path.write_bytes(path.read_bytes()[:-100])


def write_flipped_npz(path):
    np.savez_compressed(path.open("wb"), images=COLOUR)
    content = bytearray(path.read_bytes())
    content[1000:1100] = bytes(100)
    path.write_bytes(content)


def write_text(path):
    path.write_text("1,2,3\n")


def write_nothing(path):
    path.touch()


@pytest.mark.parametrize(
    ("write", "word"),
    [
        (write_pickled, "pickled"),
        (write_pickled_in_npz, "pickled"),
        (write_cut_npy, "cut short"),
        (write_cut_header, "cut short"),
        (write_cut_npz, "cut short"),
        (write_flipped_npz, "damaged"),
        (write_text, "not a NumPy file"),
        (write_nothing, "not a NumPy file"),
        (Path.mkdir, "is a folder, not a file: give a regular file"),
        (str, "No such file"),  # writes nothing
    ],
)
def test_a_file_that_cannot_be_read_says_why_in_one_line(tmp_path, write, word):
    path = tmp_path / "broken.npy"
    write(path)
    with pytest.raises(InputError) as caught:
        load_array_file(path)
    message = str(caught.value)
    assert str(path) in message
    assert word in message
    assert "\n" not in message


def test_nothing_pickled_is_ever_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").touch, ())

    np.save(tmp_path / "trap.npy", np.array([Trap()], object))
    with pytest.raises(InputError):
        load_array_file(tmp_path / "trap.npy")
    assert not (tmp_path / "sprung").exists()


def test_an_archive_beyond_memory_says_what_to_do(tmp_path, monkeypatch):
    def no_memory(*_args, **_options):
        raise MemoryError

    np.save(tmp_path / "a.npy", COLOUR)
    monkeypatch.setattr(np, "load", no_memory)
    with pytest.raises(InputError, match=r"does not fit in memory: save the images as \.npy"):
        load_array_file(tmp_path / "a.npy")
