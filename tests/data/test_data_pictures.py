"""Pictures for a report: of files, as they are asked for, with a hole where one is missing."""

import shutil

import numpy as np
import pytest

from dcdc.data import decode_image, from_vectors, load_data
from dcdc.data import pictures as module
from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import missing_pictures, pictures_of


@pytest.fixture
def vectors(vectors_file, tmp_path):
    folder = shutil.copytree(vectors_file.parent, tmp_path / "own")
    return load_data(folder / "vectors.npz"), folder


def test_images_are_shown_as_they_are(tiny_set):
    assert pictures_of(tiny_set) == (tiny_set.images, None)


def test_files_are_decoded_at_their_own_side_and_only_when_asked_for(vectors, monkeypatch):
    data, folder = vectors
    asked = []

    def noted(file, side, channels):
        asked.append(file.name)
        return decode_image(file, side, channels)

    monkeypatch.setattr(module, "decode_image", noted)
    pictures, why = pictures_of(data)
    assert (pictures.shape, why, asked) == ((24, 48, 48, 3), None, [])
    shown = gather_rows(pictures, np.array([5, 2, 5]))
    assert sorted(asked) == ["02.png", "05.png"]
    assert np.array_equal(shown[0], decode_image(folder / "photos/kind-2/05.png", 48, 3))
    assert np.array_equal(shown[0], shown[2])
    assert np.array_equal(gather_rows(pictures, np.array([2]))[0], shown[1])
    assert len(asked) == 2  # the second time it was known
    assert missing_pictures(pictures, data.names) is None


def test_one_that_is_missing_is_crossed_out_and_told_of(vectors):
    data, folder = vectors
    (folder / "photos/kind-1/04.png").unlink()
    (folder / "photos/kind-0/06.png").write_bytes(b"no image")
    pictures, why = pictures_of(data)
    assert why is None
    shown = gather_rows(pictures, np.array([3, 4]))
    assert np.array_equal(shown[0], decode_image(folder / "photos/kind-0/03.png", 48, 3))
    assert set(np.unique(shown[1])) == {module._GROUND, module._CROSS}
    told = missing_pictures(pictures, data.names)
    assert told.startswith("1 image cannot be read and is crossed out, first photos/kind-1/04.png:")
    gather_rows(pictures, np.array([6]))
    assert missing_pictures(pictures, data.names).startswith("2 images cannot be read")


def test_where_none_can_be_read_it_says_why(vectors):
    data, folder = vectors
    shutil.rmtree(folder / "photos")
    pictures, why = pictures_of(data)
    assert pictures is None
    assert why.startswith("The images of the feature vectors cannot be shown: ")
    assert "kind-0/00.png" in why


def test_without_files_it_says_so():
    pictures, why = pictures_of(from_vectors(np.eye(3, dtype=np.float32)))
    assert pictures is None
    assert "nothing tells which images" in why


def test_a_page_that_asks_for_many_does_not_keep_them_all(vectors, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 3)
    pictures, _ = pictures_of(vectors[0])
    every = gather_rows(pictures, np.arange(24))
    assert len(pictures._known) == 3
    assert np.array_equal(gather_rows(pictures, np.arange(24)), every)
