"""Real bytes of every format that one array or several lie in: `.npy`, `.npz` and safetensors."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import (
    SOURCES,
    Source,
    VectorSet,
    from_vectors,
    load_data,
    load_images,
    vector_files,
    vector_rows,
)
from dcdc.data.sources import require_at_hand
from dcdc.errors import InputError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(12, 5)).astype(np.float32)
IMAGES = RANDOM.integers(0, 256, (12, 8, 8), np.uint8)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mapping(monkeypatch, tmp_path):
    """Everything counts as large."""
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    for module in (vector_files, vector_rows):
        monkeypatch.setattr(module, "MAP_ABOVE_BYTES", 0)
    monkeypatch.setattr(vector_rows, "_BLOCK_BYTES", 5 * ROWS[0].nbytes)


def refused(source, load=load_data, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        load(source, **options)
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_a_matrix_in_npy_is_vectors_and_more_axes_are_images(here):
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        np.save("a.npy", ROWS.astype(dtype))
        found = load_data(here / "a.npy")
        assert isinstance(found, VectorSet)
        assert found.vectors.dtype == (np.float16 if dtype == np.float16 else np.float32)
        assert np.array_equal(found.vectors, ROWS.astype(dtype).astype(found.vectors.dtype))
        assert found.known_as == ""
    for images in (IMAGES, IMAGES[..., None], IMAGES / np.float32(255)):
        np.save("i.npy", images)
        assert np.array_equal(load_data("i.npy").images[..., 0], IMAGES)


def test_vectors_are_no_images():
    np.save("a.npy", ROWS)
    np.savez("a.npz", features=ROWS)
    save_file({"features": ROWS}, "a.safetensors")
    for source in ("a.npy", "a.npz", "a.safetensors"):
        told = refused(source, load_images)
        assert told == f"{source} holds feature vectors, no images: give images here"


@pytest.mark.parametrize("key", ["vectors", "features", "embeddings", "x", "data", "arr_0"])
@pytest.mark.parametrize("target_key", ["targets", "labels", "y"])
def test_npz_by_its_keys(key, target_key):
    np.savez("a.npz", **{key: ROWS, target_key: ["b", "a"] * 6})
    found = load_data("a.npz")
    assert np.array_equal(found.vectors, ROWS)
    assert found.class_names == ("a", "b")
    assert found.targets.tolist() == [1, 0] * 6
    assert load_data("a.npz", target="none").targets is None


def test_npz_with_all_that_goes_with_the_rows(here):
    files = [f"photos/{row}.jpg" for row in range(12)]
    names = [f"n{row}" for row in range(12)]
    copies = ROWS.astype(np.float16)
    np.savez_compressed("a.npz", features=ROWS, copies=copies, names=names, paths=files)
    found = load_data("a.npz")
    assert list(found.names) == names
    assert found.copies.dtype == np.float16
    assert np.array_equal(found.copies, copies)
    assert found.files[3] == here / "photos" / "3.jpg"
    np.savez("a.npz", features=ROWS, files=np.array(files, "S"))
    assert list(load_data("a.npz").names) == files


def test_npz_of_images_stays_images_unless_an_array_is_named():
    np.savez("a.npz", images=IMAGES, features=ROWS)
    assert load_data("a.npz").images.shape == (12, 8, 8, 1)
    assert np.array_equal(load_data("a.npz", column="features").vectors, ROWS)
    assert "no array 'feature': did you mean 'features'?" in refused("a.npz", column="feature")
    assert "(12, 8, 8): give feature vectors as N x D" in refused("a.npz", column="images")
    np.savez("x.npz", x=IMAGES, y=np.arange(12))
    assert load_data("x.npz").images.shape == (12, 8, 8, 1)
    np.savez("v.npz", x=IMAGES, vectors=ROWS)
    assert np.array_equal(load_data("v.npz").vectors, ROWS)
    np.savez("v.npz", vectors=IMAGES)
    assert "v.npz has shape (12, 8, 8): give feature vectors" in refused("v.npz")


def test_safetensors_by_name_or_the_only_matrix():
    targets = np.arange(12) % 3
    save_file({"features": ROWS, "copies": ROWS + 1, "targets": targets}, "a.safetensors")
    found = load_data("a.safetensors")
    assert np.array_equal(found.vectors, ROWS)
    assert np.array_equal(found.copies, ROWS + 1)
    assert found.class_names == ("0", "1", "2")
    save_file({"anything": ROWS.astype(np.float16), "bias": ROWS[0]}, "b.safetensors")
    assert load_data("b.safetensors").vectors.dtype == np.float16
    save_file({"w1": ROWS, "w2": ROWS + 1}, "c.safetensors")
    assert refused("c.safetensors") == (
        "c.safetensors holds 2 matrices (w1, w2): name one vectors, features or embeddings, or "
        "name it by --column"
    )
    assert np.array_equal(load_data("c.safetensors", column="w2").vectors, ROWS + 1)
    assert "no tensor 'w3'" in refused("c.safetensors", column="w3")
    save_file({"bias": ROWS[0]}, "d.safetensors")
    assert "no matrix of floats: name one vectors" in refused("d.safetensors")
    save_file({"features": ROWS[0]}, "e.safetensors")
    assert "has shape (5,)" in refused("e.safetensors")


def test_bfloat16_becomes_float32(request):
    tensor = torch.from_numpy(ROWS).bfloat16()
    save_torch_file({"vectors": tensor}, "a.safetensors")
    assert np.array_equal(load_data("a.safetensors").vectors, tensor.float().numpy())
    request.getfixturevalue("mapping")
    found = load_data("a.safetensors").vectors
    assert is_mapped(found)
    assert np.array_equal(found, tensor.float().numpy())


def test_small_files_are_held_so_that_they_may_change():
    np.save("a.npy", ROWS)
    save_file({"features": ROWS}, "a.safetensors")
    for source in ("a.npy", "a.safetensors"):
        assert not is_mapped(load_data(source).vectors)


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_large_files_stay_mapped(here, dtype):
    rows = ROWS.astype(dtype)
    np.save("a.npy", rows)
    save_file({"features": rows, "copies": rows + 1}, "a.safetensors")
    for source in ("a.npy", "a.safetensors"):
        found = load_data(source)
        assert is_mapped(found.vectors)
        assert found.vectors.dtype == dtype
        assert np.array_equal(found.vectors, rows)
    assert is_mapped(found.copies)
    assert np.array_equal(found.copies, rows + 1)
    assert not (here / "cache").exists()


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows.astype(np.float64),
        np.asfortranarray,
        lambda rows: (99 * rows).astype(np.int16),
    ],
)
def test_large_files_that_need_another_type_or_order_are_kept_in_the_cache(convert):
    rows = convert(ROWS)
    rows[0] = 1
    np.save("a.npy", rows)
    for _ in range(2):  # built, then found
        found = load_data("a.npy")
        assert is_mapped(found.vectors)
        assert found.vectors.dtype == np.float32
        assert found.vectors.flags.c_contiguous
        assert np.array_equal(found.vectors, rows.astype(np.float32))
    rows[3] += 1
    np.save("a.npy", rows)  # another content is another entry
    assert np.array_equal(load_data("a.npy").vectors, rows.astype(np.float32))


@pytest.mark.usefixtures("mapping")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bad_rows_of_large_files_are_counted_or_left_out(dtype):
    rows = ROWS.astype(dtype)
    rows[[2, 6, 7], 0] = np.nan
    np.save("a.npy", rows)
    for _ in range(2):
        assert "a.npy has NaN, infinite or missing values in 3 of 12 rows, first in row 2" in (
            refused("a.npy")
        )
        found = load_data("a.npy", on_bad="skip")
        assert is_mapped(found.vectors)
        assert np.array_equal(found.vectors, np.delete(rows, [2, 6, 7], axis=0).astype("f4"))
        assert [each.name for each in found.skipped] == ["image-0002", "image-0006", "image-0007"]


def write_pickled(path):
    np.save(path.open("wb"), np.array([[{"a": 1}]], object))


def write_cut(path):
    np.save(path.open("wb"), ROWS)
    path.write_bytes(path.read_bytes()[:-10])


def write_cut_npz(path):
    np.savez(path.open("wb"), vectors=ROWS)
    path.write_bytes(path.read_bytes()[:-10])


def write_flipped_npz(path):
    np.savez_compressed(path.open("wb"), vectors=RANDOM.normal(size=(300, 5)))
    content = bytearray(path.read_bytes())
    content[1000:1100] = bytes(100)
    path.write_bytes(content)


def write_cut_safetensors(path):
    save_file({"vectors": ROWS}, path)
    path.write_bytes(path.read_bytes()[:-10])


def write_lying_safetensors(path):
    about = {"vectors": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 4]}}
    header = json.dumps(about).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


@pytest.mark.parametrize(
    ("name", "write", "word"),
    [
        ("a.npy", write_pickled, "pickled"),
        ("a.npy", write_cut, "cut short"),
        ("a.npy", Path.touch, "not a NumPy file"),
        ("a.npz", write_cut_npz, "cut short"),
        ("a.npz", write_flipped_npz, "damaged"),
        ("a.npz", Path.touch, "not a NumPy file"),
        ("a.safetensors", write_cut_safetensors, "cut short"),
        ("a.safetensors", write_lying_safetensors, "damaged"),
        ("a.safetensors", Path.touch, "no safetensors file"),
        ("a.safetensors", write_pickled, "no safetensors file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_in_one_line(here, name, write, word):
    write(here / name)
    told = refused(name)
    assert name in told
    assert word in told


def test_faults_of_content_name_the_file():
    np.save("one.npy", ROWS[:1])
    assert load_data("one.npy").n_images == 1
    assert refused("one.npy", at_least=2) == "one.npy has 1 row: give at least 2"
    np.save("equal.npy", np.ones((4, 3)))
    assert "the 4 rows of equal.npy are all equal" in refused("equal.npy")
    assert load_data("equal.npy", may_be_equal=True).n_images == 4
    for rows in (ROWS.astype(complex), ROWS.astype(str)):
        np.save("type.npy", rows)
        assert "give floats or integers" in refused("type.npy")
    np.save("none.npy", ROWS[:0])
    assert "none.npy has shape (0, 5), which holds no row" in refused("none.npy")
    np.savez("a.npz", vectors=ROWS, y=[1, 2])
    assert "a.npz has 12 rows but 2 targets" in refused("a.npz")
    np.savez("a.npz", vectors=ROWS, copies=ROWS[:, :4])
    assert "a.npz has shape (12, 5) but its copies have (12, 4)" in refused("a.npz")


def test_what_has_no_meaning_is_refused():
    np.save("a.npy", ROWS)
    assert "--target kind has no meaning for a.npy" in refused("a.npy", target="kind")
    assert "--column f has no meaning for a.npy" in refused("a.npy", column="f")
    assert "--size 32 has no meaning for a.npy" in refused("a.npy", size=32)
    assert "--column f has no meaning for digits" in refused("digits", column="f")
    assert load_data("a.npy", target="none").n_images == 12
    assert load_data("digits").known_as == "digits"
    assert "does not exist" in refused("nowhere.npy")


def test_a_source_from_outside_may_give_vectors(monkeypatch):
    monkeypatch.setattr(SOURCES, "_entries", dict(SOURCES._entries))
    find = lambda text, size, target: from_vectors(ROWS, where=text)  # noqa: E731, ARG005
    SOURCES.register("store", Source(lambda text: text.startswith("store://"), find))
    assert np.array_equal(load_data("store://a").vectors, ROWS)
    assert "store://a has 12 rows: give at least 20" in refused("store://a", at_least=20)
    assert "store://a holds feature vectors, no images" in refused("store://a", load_images)
    require_at_hand("store://a")
