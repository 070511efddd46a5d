import errno
import os
import stat

import pytest

from dcdc.runtime.atomic_files import (
    atomic_file,
    atomic_folder,
    place,
    remove_leftovers,
    write_text,
)


def test_a_file_appears_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "deep" / "file.json"
    write_text(path, "first")
    write_text(path, "second")
    assert path.read_text() == "second"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file_and_cleans_up(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "good")
    with pytest.raises(RuntimeError), atomic_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "good"
    assert list(tmp_path.iterdir()) == [path]


def test_the_temporary_name_keeps_the_suffix(tmp_path):
    with atomic_file(tmp_path / "figure.png") as temporary:
        assert temporary.suffix == ".png"
        temporary.write_bytes(b"")


def test_a_failed_folder_never_appears(tmp_path):
    path = tmp_path / "folder"
    with pytest.raises(RuntimeError), atomic_folder(path) as temporary:
        (temporary / "one").write_text("1")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_replaces_an_older_one_whole(tmp_path):
    path = tmp_path / "folder"
    for name in ("old", "new"):
        with atomic_folder(path) as temporary:
            (temporary / name).write_text(name)
    assert [file.name for file in path.iterdir()] == ["new"]


def test_folders_are_as_readable_as_the_umask_says(tmp_path):
    before = os.umask(0o022)
    try:
        with atomic_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o755


def test_leftovers_of_a_killed_writer_are_cleared_and_nothing_else(tmp_path):
    (tmp_path / ".report.123.partial.html").write_text("half")
    (tmp_path / ".epoch-1.123.partial").mkdir()
    (tmp_path / ".epoch-1.123.partial" / "tensors").write_text("half")
    (tmp_path / "partial.txt").write_text("mine")
    (tmp_path / ".hidden").write_text("mine")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "partial.txt"]


@pytest.fixture(params=["one disk", "two disks"])
def disks(request, monkeypatch):
    """Two disks as the kernel shows them: no link leads from one to the other."""
    if request.param == "two disks":

        def refuse(*_, **__):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("disks")
def test_a_file_is_moved_to_a_free_place_and_never_over_another(tmp_path):
    (tmp_path / "made").write_text("new")
    place(tmp_path / "made", tmp_path / "there.txt")
    assert (tmp_path / "there.txt").read_text() == "new"
    assert not (tmp_path / "made").exists()
    (tmp_path / "made").write_text("newer")
    (tmp_path / "link").symlink_to("nowhere")
    for taken in ("there.txt", "link"):
        with pytest.raises(FileExistsError):
            place(tmp_path / "made", tmp_path / taken)
    assert (tmp_path / "there.txt").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"made", "there.txt", "link"}


def test_a_move_that_was_cut_between_its_two_steps_is_finished(tmp_path):
    (tmp_path / "made").write_text("new")
    (tmp_path / "there").hardlink_to(tmp_path / "made")
    place(tmp_path / "made", tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
