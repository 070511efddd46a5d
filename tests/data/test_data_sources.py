from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dcdc.data import load_images
from dcdc.errors import InputError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(source, **options):
    with pytest.raises(InputError) as caught:
        load_images(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_kind_of_source(here):
    images = np.arange(2 * 9 * 9 * 3, dtype=np.uint8).reshape(2, 9, 9, 3)
    np.save("a.npy", images)
    np.savez("b.npz", images=images, y=["u", "v"])
    (here / "a.npy").rename("A.NPY")
    (here / "photos").mkdir()
    Image.fromarray(images[1]).save("photos/p.png")
    assert load_images("digits").n_images == 1797
    assert np.array_equal(load_images("A.NPY").images, images)
    assert load_images(here / "b.npz").class_names == ("u", "v")
    assert np.array_equal(load_images("photos", size=9).images, images[1:])


def test_size_goes_to_every_source(here):
    np.save("a.npy", np.zeros((1, 9, 20, 3), np.uint8))
    (here / "photos").mkdir()
    Image.new("RGB", (40, 30)).save("photos/p.png")
    for source in ("digits", "a.npy", "photos"):
        assert load_images(source, size=12).side == 12
    assert load_images("a.npy").image_shape == (9, 9, 3)
    assert "size is 0" in refused("digits", size=0)


def test_a_built_in_name_wins_unless_a_path_is_meant(here):
    (here / "digits").mkdir()
    Image.new("L", (8, 8)).save("digits/only.png")
    assert load_images("digits").n_images == 1797
    for path in ("./digits", "digits/", here / "digits", Path("digits")):
        assert load_images(path).n_images == 1
    (here / "digits").rename("other")
    assert load_images(Path("digits")).n_images == 1797


@pytest.mark.parametrize("source", ["digit", "Digits", "didgits", "./digits"])
@pytest.mark.usefixtures("here")
def test_the_nearest_name_is_suggested(source):
    message = refused(source)
    assert repr(source) in message
    assert "did you mean 'digits'?" in message


@pytest.mark.parametrize("source", ["", "imagenet", "gone/", "gone.npy", "x" * 300, "nul\0"])
@pytest.mark.usefixtures("here")
def test_anything_else_lists_what_is_possible(source):
    message = refused(source)
    assert "did you mean" not in message
    if len(source) < 300:
        assert "built-in name (digits), a folder of images, or a .npy or .npz file" in message


@pytest.mark.usefixtures("here")
def test_a_file_of_another_kind_is_not_said_to_be_missing():
    Image.new("L", (8, 8)).save("one.png")
    assert "is no folder and no .npy or .npz file" in refused("one.png")


def test_bad_images_go_as_the_caller_chose(here):
    (here / "photos").mkdir()
    Image.new("L", (8, 8)).save("photos/a.png")
    (here / "photos" / "b.png").write_text("hello")
    assert "b.png" in refused("photos")
    seen = []
    found = load_images("photos", on_bad="skip", progress=lambda *step: seen.append(step))
    assert [entry.name for entry in found.skipped] == ["b.png"]
    assert seen == [(1, 1)]
    assert "'shrug'" in refused("digits", on_bad="shrug")
