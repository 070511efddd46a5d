"""Images block by block, as the row cache would hold them, without a cache."""

import os

import numpy as np
import pytest
from PIL import Image

from dcdc.data import load_images
from dcdc.data.image_stream import open_stream
from dcdc.errors import InputError


@pytest.fixture
def photos(tmp_path):
    random = np.random.default_rng(0)
    folder = tmp_path / "photos"
    for index in range(700):
        kind = folder / f"kind-{index % 2}"
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (9, 8), np.uint8)).save(kind / f"{index:03}.png")
    return folder


def pixels(stream, start=0, some=300):
    return np.concatenate([block.pixels for block in stream.blocks(start, some)])


def test_a_folder_gives_what_the_cache_would_hold_and_leaves_the_cache_alone(
    photos, tmp_path, monkeypatch
):
    cached = load_images(photos, size=8)
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "untouched"))
    stream = open_stream(photos, size=8, channels=1)
    assert np.array_equal(pixels(stream), cached.images)
    assert list(stream.names) == list(cached.names)
    assert np.array_equal(stream.targets, cached.targets)
    assert stream.class_names == cached.class_names
    assert not (tmp_path / "untouched").exists()


def test_from_the_end_of_any_block_on_the_same_blocks_come(photos):
    stream = open_stream(photos, size=8, channels=1)
    sizes = [block.n_read for block in stream.blocks(0, 300)]
    assert sizes == [512, 188]
    later = list(stream.blocks(512, 300))
    assert [block.n_read for block in later] == [188]
    assert np.array_equal(later[0].pixels, pixels(stream)[512:])


def test_what_cannot_be_read_is_told_by_its_row(photos):
    (photos / "kind-0" / "000.png").write_bytes(b"torn")
    (photos / "kind-1" / "699.png").write_bytes(b"torn")
    blocks = list(open_stream(photos, size=8, channels=1).blocks(0, 10_000))
    assert [[row for row, _ in block.skipped] for block in blocks] == [[0, 699]]
    assert blocks[0].n_read == 700
    assert len(blocks[0].pixels) == 698


def test_files_are_brought_to_the_channels_asked_for(tmp_path):
    random = np.random.default_rng(0)
    Image.fromarray(random.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "colour.png")
    Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(tmp_path / "grey.png")
    grey = open_stream(tmp_path, size=8, channels=1)
    assert pixels(grey).shape == (2, 8, 8, 1)
    assert grey.loses_colour()
    colour = open_stream(tmp_path, size=8, channels=3)
    assert pixels(colour).shape == (2, 8, 8, 3)
    assert not colour.loses_colour()
    (tmp_path / "colour.png").unlink()
    assert not open_stream(tmp_path, size=8, channels=1).loses_colour()


def test_arrays_come_in_pieces_at_the_size_asked_for(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (50, 10, 12), np.uint8)
    np.save(tmp_path / "images.npy", images)
    stream = open_stream(tmp_path / "images.npy", size=8, channels=1)
    assert [block.n_read for block in stream.blocks(0, 20)] == [20, 20, 10]
    whole = load_images(tmp_path / "images.npy", size=8).images
    assert np.array_equal(pixels(stream, some=20), whole)
    assert np.array_equal(pixels(stream, start=20, some=20), whole[20:])
    assert stream.file_of is None


def test_arrays_below_the_smallest_size_are_enlarged(tmp_path):
    np.save(tmp_path / "small.npy", np.zeros((3, 4, 4), np.uint8))
    assert pixels(open_stream(tmp_path / "small.npy", size=8, channels=1)).shape == (3, 8, 8, 1)


def test_a_mapped_file_is_read_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("dcdc.data.arrays.MAP_ABOVE_BYTES", 0)
    images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), np.uint8)
    np.save(tmp_path / "images.npy", images)
    blocks = list(open_stream(tmp_path / "images.npy", size=8, channels=1).blocks(0, 20))
    assert all(block.pixels.flags.writeable for block in blocks)
    assert np.array_equal(np.concatenate([b.pixels for b in blocks])[..., 0], images)


def test_arrays_of_other_channels_are_refused(tmp_path):
    np.save(tmp_path / "colour.npy", np.zeros((3, 8, 8, 3), np.uint8))
    with pytest.raises(InputError, match=r"trained on images of 1 channel.*colour.npy have 3"):
        open_stream(tmp_path / "colour.npy", size=8, channels=1)


def test_the_fingerprint_follows_images_size_and_labels(photos, tmp_path):
    def fingerprint(source, size=8):
        return open_stream(source, size=size, channels=1).fingerprint

    first = fingerprint(photos)
    assert fingerprint(photos) == first
    assert fingerprint(photos, size=9) != first
    os.utime(photos / "kind-0" / "000.png", (1, 1))
    assert fingerprint(photos) != first
    assert fingerprint("digits") == fingerprint("digits")
    table = tmp_path / "list.csv"
    table.write_text("path,label\nphotos/kind-0/000.png,a\nphotos/kind-1/001.png,b\n")
    labelled = fingerprint(table)
    table.write_text("path,label\nphotos/kind-0/000.png,b\nphotos/kind-1/001.png,a\n")
    assert fingerprint(table) != labelled


def test_files_can_be_found_by_their_rows(photos, tmp_path):
    stream = open_stream(photos, size=8, channels=1)
    assert stream.file_of(699) == photos.resolve() / "kind-1" / "699.png"
    (tmp_path / "list.txt").write_text("photos/kind-1/001.png\nphotos/kind-0/000.png\n")
    listed = open_stream(tmp_path / "list.txt", size=8, channels=1)
    assert listed.file_of(1).samefile(photos / "kind-0" / "000.png")
