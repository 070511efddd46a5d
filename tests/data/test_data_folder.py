import os
import shutil
import tempfile
from pathlib import Path

import pytest
from PIL import Image

from dcdc.data import heic
from dcdc.data.decode import decode_image
from dcdc.data.folder import files_below, list_folder
from dcdc.data.left_out import NO_IMAGES, told
from dcdc.data.listing import BadImage
from dcdc.errors import InputError
from dcdc.printable import file_name


def write(path, value=0, side=16):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (side, side), value).save(path)
    return path


def refused(folder):
    with pytest.raises(InputError) as caught:
        list_folder(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def values(listing, start=0):
    """The first pixel of each image, or why there is none."""
    return [
        str(image) if isinstance(image, BadImage) else int(decode_image(image, 16, 1)[0, 0, 0])
        for image in listing.encoded(start)
    ]


def test_flat_folder_in_sorted_order_without_targets(tmp_path):
    for value, name in enumerate(["b.png", "a10.PNG", "a9.Jpeg", "c.TIF"]):
        write(tmp_path / name, value)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "jpg").write_text("no extension")
    write(tmp_path / ".hidden.png")
    write(tmp_path / ".thumbnails" / "t.png")
    found = list_folder(tmp_path)
    assert found.where == str(tmp_path)
    assert list(found.names) == ["a10.PNG", "a9.Jpeg", "b.png", "c.TIF"]
    assert values(found) == [1, 2, 0, 3]
    assert values(found, start=2) == [0, 3]
    assert values(found, start=4) == []
    assert (found.targets, found.class_names) == (None, ())


def test_what_is_left_out_is_counted_by_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(heic, "is_readable", lambda: False)
    write(tmp_path / "a.png")
    write(tmp_path / "b.jpg").rename(tmp_path / "b.jfif")
    others = ["1.heic", "2.HEIC", "film/3.mp4", "raw/4.CR2", "notes.txt", "no-extension", "x.xmp"]
    ignored = ["Thumbs.db", "desktop.ini", ".DS_Store", "._a.jpg", ".hidden/5.heic"]
    for name in others + ignored:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = list_folder(tmp_path)
    assert list(found.names) == ["a.png", "b.jfif"]
    assert dict(found.left_out) == {"heic": 2, "mp4": 1, "cr2": 1, NO_IMAGES: 3}
    assert told(found.left_out) == (
        "2 .heic (pip install 'dcdc[heic]' to read them), 1 .cr2 (export them as JPEG), "
        "1 .mp4 (take frames of them, by ffmpeg say), 3 files that are no images"
    )
    monkeypatch.setattr(heic, "is_readable", lambda: True)
    assert "heic" not in list_folder(tmp_path).left_out


def test_a_folder_of_nothing_else_says_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr(heic, "is_readable", lambda: False)
    (tmp_path / "1.heic").write_bytes(b"x")
    line = refused(tmp_path)
    assert f"no image in folder {tmp_path}, but 1 .heic (pip install 'dcdc[heic]'" in line


def test_nested_folders_in_the_order_of_whole_paths(tmp_path):
    names = ["a b/1.png", "a-z.png", "a.png", "a/b.png", "a/b/2.png", "a/b/c/3.png", "a0/4.png"]
    for value, name in enumerate(names):
        write(tmp_path / name, value)
    found = list_folder(tmp_path)
    assert list(found.names) == names == sorted(names)
    assert values(found) == list(range(7))


def test_first_level_sub_folders_are_the_classes(tmp_path):
    for name in ["dog/1.png", "cat/deep/2.png", "cat/3.png", "ant/4.png", "ant hill/5.png"]:
        write(tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    found = list_folder(tmp_path)
    assert list(found.names)[:2] == ["ant hill/5.png", "ant/4.png"]
    assert found.class_names == ("ant", "ant hill", "cat", "dog")
    assert found.targets.tolist() == [1, 0, 2, 2, 3]


@pytest.mark.parametrize("names", [["a/1.png", "b/2.png", "3.png"], ["a/x/1.png", "a/y/2.png"]])
def test_other_trees_have_no_targets(tmp_path, names):
    for name in names:
        write(tmp_path / name)
    found = list_folder(tmp_path)
    assert (found.targets, found.class_names) == (None, ())


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    write(tmp_path / "set" / "a.png", 5)
    monkeypatch.chdir(tmp_path)
    found = list_folder(Path("set"))
    monkeypatch.chdir("/")
    assert found.where == "set"
    assert values(found) == [5]


def test_folders_without_an_image(tmp_path):
    assert "no image" in refused(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert "jpg, jpeg, jfif, png, webp, avif, tif, tiff, gif, bmp" in refused(tmp_path)
    write(tmp_path / "a.png")
    assert "No such file" in refused(tmp_path / "gone")
    assert "Not a directory" in refused(tmp_path / "a.png")


def test_a_link_may_lead_to_a_file_inside_alone(tmp_path):
    folder = tmp_path / "set"
    write(folder / "a.png", 5)
    write(folder / "deep" / "b.png", 6)
    write(tmp_path / "set2" / "out.png", 7)  # a neighbour whose name begins as the folder's
    (folder / "to_file.png").symlink_to(folder / "a.png")
    (folder / "deep" / "up.png").symlink_to("../a.png")
    (folder / "to_link.png").symlink_to("to_file.png")
    (folder / "out.png").symlink_to("../set2/out.png")
    (folder / "round.png").symlink_to("round.png")
    (folder / "nowhere.png").symlink_to("gone.png")
    os.mkfifo(folder / "pipe.png")
    (folder / "to_pipe.png").symlink_to("pipe.png")
    seen_through_a_link = tmp_path / "link"
    seen_through_a_link.symlink_to(folder)
    for root in (folder, seen_through_a_link):
        found = list_folder(root)
        assert dict(zip(found.names, values(found), strict=True)) == {
            "a.png": 5,
            "deep/b.png": 6,
            "deep/up.png": 5,
            "nowhere.png": "no such file, or a link that leads nowhere",
            "out.png": "a path or link that leads out of the folder",
            "pipe.png": "not a regular file",
            "round.png": "no such file, or a link that leads nowhere",
            "to_file.png": 5,
            "to_link.png": 5,
            "to_pipe.png": "not a regular file",
        }


@pytest.mark.parametrize("name", ["loop", "loop.png"])
def test_a_link_to_a_folder_is_refused(tmp_path, name):
    write(tmp_path / "deep" / "a.png")
    (tmp_path / "deep" / name).symlink_to(tmp_path)
    assert f"{name} is a link to a folder" in refused(tmp_path)
    (tmp_path / "deep" / name).rename(tmp_path / "deep" / ".hidden")
    assert list(list_folder(tmp_path).names) == ["deep/a.png"]


def change_content(folder):
    write(folder / "a.png", side=17)


def change_time(folder):
    os.utime(folder / "a.png", ns=(1, 1))


def add_image(folder):
    write(folder / "c.png")


def rename_image(folder):
    (folder / "a.png").rename(folder / "a2.png")


def move_link(folder):
    (folder / "link.png").unlink()
    (folder / "link.png").symlink_to("b.png")


def change_what_a_link_leads_to(folder):
    os.utime(folder.parent / "out.png", ns=(1, 1))


def mend_link(folder):
    write(folder.parent / "gone.png")


@pytest.mark.parametrize(
    "change",
    [
        change_content,
        change_time,
        add_image,
        rename_image,
        move_link,
        change_what_a_link_leads_to,
        mend_link,
    ],
)
def test_the_fingerprint_is_another_after_any_change(tmp_path, change):
    folder = tmp_path / "set"
    twin = write(folder / "a.png")
    write(folder / "b.png")
    os.utime(folder / "b.png", ns=(twin.stat().st_mtime_ns, twin.stat().st_mtime_ns))
    (folder / "link.png").symlink_to("a.png")
    write(tmp_path / "out.png")
    (folder / "out.png").symlink_to("../out.png")
    (folder / "gone.png").symlink_to("../gone.png")
    before = list_folder(folder).fingerprint
    (folder / "notes.txt").write_text("no image")
    assert list_folder(folder).fingerprint == before
    change(folder)
    assert list_folder(folder).fingerprint != before


def test_a_deep_tree_and_other_files(tmp_path):
    deep = tmp_path
    for _ in range(40):
        deep = deep / "d"
    deep.mkdir(parents=True)
    for name in ("x.parquet", "y.PARQUET", ".z.parquet", "parquet"):
        (deep / name).touch()
    assert list(files_below(tmp_path, ("parquet",))) == [
        "d/" * 40 + "x.parquet",
        "d/" * 40 + "y.PARQUET",
    ]


def test_names_that_are_not_utf_8_can_be_written_and_told_apart(tmp_path):
    names = (b"a\\xff/1.png", b"a\xfe/1.png", b"a\xff/1.png", b"b/2.png")
    for value, name in enumerate(names):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        try:
            write(path, value)
        except OSError:
            pytest.skip("this file system takes UTF-8 names alone")
    found = list_folder(tmp_path)
    assert [os.fsencode(file_name(name)) for name in found.names] == list(names)
    assert found.names[1:] == ("a\\xfe/1.png", "a\\xff/1.png", "b/2.png")
    assert len(set(found.class_names)) == 4
    assert "".join((*found.names, *found.class_names)).encode("utf-8")
    assert values(found) == [0, 1, 2, 3]


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
        assert "locked: Permission denied" in refused(folder)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="permissions work otherwise here")
def test_a_folder_whose_files_may_not_be_looked_at_is_said(locked_folder):
    as_whom = os.geteuid()
    if as_whom == 65534:
        os.seteuid(0)
    (locked_folder / "locked").chmod(0o444)
    os.seteuid(as_whom)
    assert "Permission denied" in refused(locked_folder)
