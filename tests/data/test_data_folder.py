import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dcdc.data import folder as folder_module
from dcdc.data import load_folder
from dcdc.errors import InputError


def write(path, value=0, side=16, mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (side, side), value).save(path)
    return path


def write_cut_jpeg(path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:-1500])


def refused(folder, **options):
    with pytest.raises(InputError) as caught:
        load_folder(folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_flat_folder_in_sorted_order_without_targets(tmp_path):
    for value, name in enumerate(["b.png", "a10.PNG", "a9.Jpeg", "c.TIF"]):
        write(tmp_path / name, value)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "jpg").write_text("no extension")
    write(tmp_path / ".hidden.png")
    write(tmp_path / ".thumbnails" / "t.png")
    found = load_folder(tmp_path)
    assert list(found.names) == ["a10.PNG", "a9.Jpeg", "b.png", "c.TIF"]
    assert found.images[:, 0, 0, 0].tolist() == [1, 2, 0, 3]
    assert found.image_shape == (16, 16, 1)
    assert (found.targets, found.class_names, found.skipped) == (None, (), ())


def test_first_level_sub_folders_are_the_classes(tmp_path):
    for name in ["dog/1.png", "cat/deep/2.png", "cat/3.png", "ant/4.png"]:
        write(tmp_path / name)
    (tmp_path / "empty").mkdir()
    found = load_folder(tmp_path)
    assert list(found.names) == ["ant/4.png", "cat/3.png", "cat/deep/2.png", "dog/1.png"]
    assert found.class_names == ("ant", "cat", "dog")
    assert found.targets.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("names", [["a/1.png", "b/2.png", "3.png"], ["a/x/1.png", "a/y/2.png"]])
def test_other_trees_have_no_targets(tmp_path, names):
    for name in names:
        write(tmp_path / name)
    assert load_folder(tmp_path).targets is None


def test_one_colour_image_makes_the_set_colour(tmp_path):
    write(tmp_path / "a.png", 7)
    write(tmp_path / "b.png", (1, 2, 3), mode="RGB")
    found = load_folder(tmp_path)
    assert found.channels == 3
    assert found.images[0, 0, 0].tolist() == [7, 7, 7]
    assert found.images[1, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("sides", "size", "side"),
    [
        ([100, 40, 30], None, 32),
        ([31, 32], None, 28),
        ([4], None, 8),
        ([16], None, 16),
        ([64], None, 64),
        ([96], None, 96),
        ([128], None, 128),
        ([224], None, 224),
        ([500, 600], None, 224),
        ([30], 48, 48),
    ],
)
def test_size_is_the_usual_side_below_the_median_unless_given(tmp_path, sides, size, side):
    for index, length in enumerate(sides):
        Image.new("L", (length, 2 * length)).save(tmp_path / f"{index}.png")
    assert load_folder(tmp_path, size=size).image_shape == (side, side, 1)


def test_a_bad_image_is_refused_by_name_or_skipped_and_recorded(tmp_path):
    for value in range(3):
        write(tmp_path / f"good{value}.png", value + 1)
    write_cut_jpeg(tmp_path / "good1_cut.jpg")  # fails when decoded
    (tmp_path / "text.png").write_text("hello")  # fails at its header
    message = refused(tmp_path)
    assert "text.png" in message
    assert "--on-bad skip" in message
    (tmp_path / "text.png").rename(tmp_path / "text.txt")
    message = refused(tmp_path)
    assert "good1_cut.jpg" in message
    assert "truncated" in message
    (tmp_path / "text.txt").rename(tmp_path / "text.png")

    steps = []
    found = load_folder(tmp_path, on_bad="skip", progress=lambda *step: steps.append(step))
    assert list(found.names) == ["good0.png", "good1.png", "good2.png"]
    assert found.images[:, 0, 0, 0].tolist() == [1, 2, 3]
    assert [entry.name for entry in found.skipped] == ["good1_cut.jpg", "text.png"]
    assert "truncated" in found.skipped[0].reason
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_bomb_is_skipped_without_a_sound(tmp_path, capfd, recwarn):
    write(tmp_path / "a.png")
    Image.new("1", (10_000, 10_000)).save(tmp_path / "bomb.png")
    found = load_folder(tmp_path, on_bad="skip")
    assert [entry.name for entry in found.skipped] == ["bomb.png"]
    assert "decompression bomb" in found.skipped[0].reason
    assert capfd.readouterr() == ("", "")
    assert list(recwarn) == []


def test_a_skipped_stray_at_the_top_leaves_the_classes(tmp_path):
    write(tmp_path / "a" / "1.png")
    write(tmp_path / "b" / "2.png")
    (tmp_path / "stray.png").write_text("hello")
    assert load_folder(tmp_path, on_bad="skip").class_names == ("a", "b")


def test_more_files_than_are_in_flight_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "_IN_FLIGHT", 5)
    monkeypatch.setattr(folder_module, "_PER_TASK", 2)
    for value in range(11):
        write(tmp_path / f"{value:02d}.png", value)
    steps = []
    found = load_folder(tmp_path, progress=lambda *step: steps.append(step))
    assert found.images[:, 3, 3, 0].tolist() == list(range(11))
    assert steps == [(done, 11) for done in range(1, 12)]


def test_folders_without_a_good_image(tmp_path):
    assert "no image" in refused(tmp_path)
    (tmp_path / "notes.txt").touch()
    message = refused(tmp_path)
    assert "jpg, jpeg, png, webp, avif, tif, tiff, gif, bmp" in message
    (tmp_path / "a.png").write_text("hello")
    (tmp_path / "b.png").write_text("hello")
    message = refused(tmp_path, on_bad="skip")
    assert "none of the 2 images" in message
    assert "a.png" in message


def test_wrong_use(tmp_path):
    write(tmp_path / "a.png")
    assert "No such file" in refused(tmp_path / "gone")
    assert "Not a directory" in refused(tmp_path / "a.png")
    assert "'ignore'" in refused(tmp_path, on_bad="ignore")
    assert "size is 4" in refused(tmp_path, size=4)


def test_links(tmp_path):
    write(tmp_path / "set" / "a.png", 5)
    (tmp_path / "set" / "b.png").symlink_to(tmp_path / "set" / "a.png")
    assert load_folder(tmp_path / "set").images[:, 0, 0, 0].tolist() == [5, 5]
    (tmp_path / "set" / "c.png").symlink_to(tmp_path / "gone.png")
    assert "c.png" in refused(tmp_path / "set")
    assert load_folder(tmp_path / "set", on_bad="skip").skipped[0].name == "c.png"
    (tmp_path / "set" / "loop").symlink_to(tmp_path / "set")
    assert "loop is a link to a folder" in refused(tmp_path / "set", on_bad="skip")


def test_a_name_that_is_not_utf_8_can_still_be_written(tmp_path):
    for name in (b"a\xff/1.png", b"b/2.png"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        try:
            write(path)
        except OSError:
            pytest.skip("this file system takes UTF-8 names alone")
    found = load_folder(tmp_path)
    assert found.names[0].encode("utf-8").decode("utf-8") == "a\N{REPLACEMENT CHARACTER}/1.png"
    assert found.class_names[0].encode("utf-8")


@pytest.fixture
def locked_folder():
    """A folder with an image and a sub-folder that we, without root's powers, may not read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    write(folder / "locked" / "a.png")
    write(folder / "b.png").chmod(0o644)
    (folder / "locked").chmod(0)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    yield folder
    if was_root:
        os.seteuid(0)
    (folder / "locked").chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions work otherwise here")
def test_what_may_not_be_read_is_said(locked_folder):
    for folder in (locked_folder / "locked", locked_folder):
        message = refused(folder, on_bad="skip")
        assert "locked: Permission denied" in message
