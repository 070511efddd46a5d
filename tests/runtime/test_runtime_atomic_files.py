import os
import stat

import pytest

from dcdc.runtime.atomic_files import atomic_file, atomic_folder, remove_leftovers, write_text


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
