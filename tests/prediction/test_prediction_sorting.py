"""Files in a folder per cluster: all of them, none touched that was there, none half-written."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from dcdc.data.image_stream import open_stream
from dcdc.errors import InputError
from dcdc.prediction import sorting
from dcdc.prediction.sorting import (
    Sorted,
    Sorting,
    check_sorting,
    cluster_folders,
    flat_name,
    sort_files,
)
from dcdc.runtime.atomic_files import copy_new

FOLDERS = ["cluster-00", "cluster-01"]


@pytest.fixture
def files(tmp_path):
    """Equal names in several folders, equal bytes too, and names that differ in case alone."""
    source = tmp_path / "photos"
    for name, content in {
        "a/x.png": "1",
        "a_x.png": "2",
        "b/x.png": "1",
        "A_x.png": "3",
        "A/X.PNG": "1",
        "z.png": "5",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(content)
    return open_stream(source, size=8, channels=1)


CLUSTERS = np.array([0, 0, 0, 0, 0, 1], np.int32)


@pytest.fixture
def sort(files, tmp_path):
    def call(clusters=CLUSTERS, by_link=False, progress=lambda *_: None):
        where = Sorting(tmp_path / "sorted", by_link=by_link)
        return sort_files(files, clusters, FOLDERS, where, key="key", progress=progress)

    return call


def found(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("by_link", [False, True])
def test_every_file_has_a_place_of_its_own_and_a_second_call_finds_it(
    sort, files, tmp_path, by_link
):
    assert list(files.names) == [
        "A/X.PNG",
        "A_x.png",
        "a/x.png",
        "a_x.png",
        "b/x.png",
        "z.png",
    ]
    assert sort(by_link=by_link) == Sorted(6, 0)
    once = found(tmp_path / "sorted")
    assert once == {
        "cluster-00/A_X.PNG": "1",
        "cluster-00/A_x-2.png": "3",
        "cluster-00/a_x-3.png": "1",
        "cluster-00/a_x-4.png": "2",
        "cluster-00/b_x.png": "1",
        "cluster-01/z.png": "5",
    }
    assert sort(by_link=by_link) == Sorted(0, 6)
    assert found(tmp_path / "sorted") == once
    assert len(found(tmp_path / "photos")) == 6
    link = tmp_path / "sorted" / "cluster-01" / "z.png"
    assert link.is_symlink() == by_link
    if by_link:
        assert link.readlink().is_absolute()


def test_a_number_that_is_another_files_own_name_is_left_to_it(tmp_path):
    """All of the same bytes, so that only the names tell them apart."""
    for name in ("a/x.png", "a_x-2.png", "a_x.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).write_text("same")
    files = open_stream(tmp_path / "photos", size=8, channels=1)
    for expected in (Sorted(3, 0), Sorted(0, 3)):
        sorting, clusters = Sorting(tmp_path / "sorted"), np.zeros(3, np.int32)
        done = sort_files(files, clusters, FOLDERS, sorting, key="k", progress=lambda *_: None)
        assert done == expected
    assert [Path(name).name for name in found(tmp_path / "sorted")] == [
        "a_x-2.png",
        "a_x-3.png",
        "a_x.png",
    ]


def test_images_that_were_left_out_stay_where_they_are(sort, tmp_path):
    assert sort(np.array([-1, -1, 0, -1, -1, 1], np.int32)) == Sorted(2, 0)
    assert len(found(tmp_path / "sorted")) == 2


@pytest.mark.parametrize("by_link", [False, True])
def test_what_is_there_is_never_touched(sort, tmp_path, by_link):
    place = tmp_path / "sorted" / "cluster-01"
    place.mkdir(parents=True)
    (place / "z.png").write_text("6")  # as long as ours, and as old
    shutil.copystat(tmp_path / "photos" / "z.png", place / "z.png")
    (place / "z-2.png").symlink_to("nowhere")
    (place / "z-3.png").mkdir()
    assert sort(by_link=by_link) == Sorted(6, 0)
    assert (place / "z.png").read_text() == "6"
    assert (place / "z-2.png").readlink().name == "nowhere"
    assert (place / "z-4.png").read_text() == "5"
    assert sort(by_link=by_link) == Sorted(0, 6)


def test_a_link_is_no_copy_and_a_copy_no_link(sort, tmp_path):
    sort(by_link=True)
    assert sort(by_link=False) == Sorted(6, 0)
    copy = tmp_path / "sorted" / "cluster-01" / "z-2.png"
    assert not copy.is_symlink()
    assert sort(by_link=True) == Sorted(0, 6)


def test_an_interrupted_copy_leaves_no_half_file(sort, tmp_path, monkeypatch):
    whole = sorting.copy_new

    def half(source, target):
        if str(source).endswith("z.png"):
            target.write_text("ha")
            raise KeyboardInterrupt
        return whole(source, target)

    monkeypatch.setattr(sorting, "copy_new", half)
    with pytest.raises(KeyboardInterrupt):
        sort()
    assert len(found(tmp_path / "sorted")) == 5
    monkeypatch.undo()
    assert sort() == Sorted(1, 5)


def test_somebody_quicker_keeps_his_file(sort, tmp_path, monkeypatch):
    whole = sorting.copy_new

    def slow(source, target):
        if str(source).endswith("z.png"):
            (tmp_path / "sorted" / "cluster-01" / "z.png").write_text("his")
        return whole(source, target)

    monkeypatch.setattr(sorting, "copy_new", slow)
    assert sort() == Sorted(6, 0)
    place = tmp_path / "sorted" / "cluster-01"
    assert ((place / "z.png").read_text(), (place / "z-2.png").read_text()) == ("his", "5")


def test_many_equal_names_do_not_slow_each_other_down(tmp_path):
    """Each number is tried once, not every number for every file."""
    source = tmp_path / "photos"
    names = [f"{'x' * 200}{number:03}/{'y' * 190}.png" for number in range(50)]
    for name in names:
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text(name)
    files = open_stream(source, size=8, channels=1)
    clusters = np.zeros(50, np.int32)
    sorting = Sorting(tmp_path / "sorted")
    done = sort_files(files, clusters, FOLDERS, sorting, key="k", progress=lambda *_: None)
    assert done == Sorted(50, 0)
    assert sorted(found(tmp_path / "sorted").values()) == names
    shortest = "y" * 180
    assert (tmp_path / "sorted" / "cluster-00" / f"{shortest}-50.png").is_file()


def test_folders_have_names_that_every_system_takes():
    names = {
        0: "cats",
        1: "Cats",
        2: "a/b\\c:d",
        3: "..",
        4: "con",
        5: ".hidden",
        6: "___",
        7: "na\u202eme",
        8: "\N{CAT FACE}" * 100,
        9: "cats-00",
    }
    found = cluster_folders(12, names)
    assert found[:8] == [
        "cats-00",
        "Cats-01",
        "a_b_c_d-02",
        "cluster-03-03",
        "cluster-04-04",
        "hidden-05",
        "cluster-06-06",
        "na_me-07",
    ]
    assert len(found[8].encode()) < 200
    assert len({name.casefold() for name in found}) == 13  # of twelve clusters, and of outliers
    del names[9]
    assert cluster_folders(12, names)[:4] == ["cats-00", "Cats-01", "a_b_c_d", "cluster-03"]
    assert cluster_folders(101, {})[7] == "cluster-007"


@pytest.mark.parametrize(
    ("name", "flat"),
    [
        ("1.png", "1.png"),
        ("cats/tabby/1.png", "cats_tabby_1.png"),
        ("/data/a/1.png", "data_a_1.png"),
        ("../a/./1.png", "a_1.png"),
        ("a/.hidden.png", "a_.hidden.png"),
        ("a/con:1?.png", "a_con_1_.png"),
        ("a/b.c/1.tar.png", "a_b.c_1.tar.png"),
    ],
)
def test_a_path_becomes_one_name(name, flat):
    assert flat_name(name) == flat


def test_what_cannot_be_sorted_is_refused(files, tmp_path):
    photos = tmp_path / "photos"
    for folder in (photos, photos / "sorted"):
        with pytest.raises(InputError, match="where its files would be read as new images"):
            check_sorting(Sorting(folder), files, FOLDERS)
    with pytest.raises(InputError, match="would be read"):
        check_sorting(Sorting(tmp_path), files, ["cats", "photos"])  # a cluster of that name
    (tmp_path / "link").symlink_to(photos)
    with pytest.raises(InputError, match="would be read"):
        check_sorting(Sorting(tmp_path / "link" / "sorted"), files, FOLDERS)
    check_sorting(Sorting(tmp_path), files, FOLDERS)
    with pytest.raises(InputError, match="digits holds no image files to sort"):
        check_sorting(Sorting(tmp_path), open_stream("digits", size=8, channels=1), FOLDERS)


def test_a_planted_link_is_not_followed(sort, tmp_path):
    treasure = tmp_path / "treasure"
    treasure.write_text("gold")
    (tmp_path / "sorted").mkdir()
    (tmp_path / "sorted" / ".dcdc-key.partial").symlink_to(treasure)
    assert sort() == Sorted(6, 0)
    assert treasure.read_text() == "gold"
    assert not [path for path in (tmp_path / "sorted").rglob("*") if path.is_symlink()]


def test_a_link_that_is_planted_again_is_refused(tmp_path, monkeypatch):
    """Between the removal of one and the making of the copy."""
    source, treasure, target = (tmp_path / name for name in ("source", "treasure", "target"))
    source.write_text("new")
    treasure.write_text("gold")
    monkeypatch.setattr(Path, "unlink", lambda path, **_: path.symlink_to(treasure))
    with pytest.raises(FileExistsError):
        copy_new(source, target)
    assert treasure.read_text() == "gold"


def test_a_copy_keeps_its_time_and_permissions(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("x")
    source.chmod(0o640)
    os.utime(source, ns=(10**18, 10**18 + 5))
    copy_new(source, target)
    assert target.stat().st_mtime_ns == 10**18 + 5
    assert target.stat().st_mode == source.stat().st_mode
