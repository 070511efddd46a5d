"""A run killed before each of its operations on files goes on, and ends as if nothing had been."""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dcdc
from dcdc.config import with_values
from dcdc.data import Skipped
from dcdc.errors import InputError
from dcdc.run import run
from dcdc.run_folder import RunFolder
from dcdc.runtime.atomic_files import is_leftover
from dcdc.runtime.folder_lock import LOCK
from kills import killed_before, watched


@pytest.fixture(scope="module")
def short(tiny_config):
    values = {"heads.epochs": 2, "heads.n_repeats": 1, "heads.over_clustering_first": 0}
    return with_values(tiny_config, values | {"train.keep_checkpoints": 1})


@pytest.fixture(scope="module")
def images(tiny_set):
    return type(tiny_set)(
        images=tiny_set.images,
        names=tiny_set.names,
        targets=tiny_set.targets,
        class_names=tiny_set.class_names,
        skipped=(Skipped("torn.png", "cut short"),),
    )


def names(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def answer(path: Path) -> dict:
    return pq.read_table(path / "assignments.parquet").to_pydict()


@pytest.fixture(scope="module")
def undisturbed(short, images, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    run(short, images, folder=RunFolder.create(path))
    return path


def go_on(config, images, path: Path, *, overwrite: bool = False) -> None:
    """As a person would: with what was begun, or anew where nothing was."""
    begun = (path / "config.json").exists() and not overwrite
    folder = RunFolder.open(path) if begun else RunFolder.create(path, overwrite=overwrite)
    run(config, images, folder=folder, resume=begun)


def kill_and_go_on(number: int, config, images, path: Path, undisturbed: Path) -> bool:
    was_killed = killed_before(
        number, lambda: run(config, images, folder=RunFolder.create(path)), path
    )
    told = "no model yet|is not a run folder"
    is_there = (path / "model.safetensors").exists()  # whoever reads finds a whole one or none
    with nullcontext() if is_there else pytest.raises(InputError, match=told):
        dcdc.load(path)
    if was_killed:
        go_on(config, images, path)
    assert answer(path) == answer(undisturbed)
    assert names(path) == names(undisturbed)
    shutil.rmtree(path)
    return was_killed


def test_killed_at_its_beginning_a_run_begins_again(short, images, undisturbed, tmp_path):
    for number in range(1, 13):
        assert kill_and_go_on(number, short, images, tmp_path / "run", undisturbed)


@pytest.mark.slow
def test_killed_anywhere_a_run_goes_on(short, images, undisturbed, tmp_path):
    number = next(
        number
        for number in count(1)
        if not kill_and_go_on(number, short, images, tmp_path / "run", undisturbed)
    )
    assert number > 50


@pytest.mark.slow
def test_killed_anywhere_a_run_that_replaces_another_can_be_begun_again(
    short, images, undisturbed, tmp_path
):
    path = tmp_path / "run"
    other = with_values(short, {"train.seed": 9})
    run(other, images, folder=RunFolder.create(tmp_path / "other"))
    for number in count(1):
        shutil.copytree(tmp_path / "other", path)
        was_killed = killed_before(number, lambda: go_on(short, images, path, overwrite=True), path)
        if was_killed:
            left = {name for name in names(path) if not is_leftover(Path(name).name)} - {LOCK}
            if "config.json" in left and RunFolder(path).read_config()["train"]["seed"] == 9:
                assert left <= names(tmp_path / "other")
                for name in left:
                    before = (tmp_path / "other" / name).read_bytes()
                    assert (path / name).read_bytes() == before, name
            go_on(short, images, path, overwrite=True)
        assert answer(path) == answer(undisturbed)
        assert names(path) == names(undisturbed)
        shutil.rmtree(path)
        if not was_killed:
            break
    assert number > 50


def test_readers_of_a_run_write_nothing_into_it(undisturbed, tiny_set):
    """So one that nobody may write to can be read."""
    operations: list[str] = []
    with watched(operations.append, undisturbed):
        model = dcdc.load(undisturbed)
        model.predict(tiny_set.images)
        model.training_features()
        folder = RunFolder.open(undisturbed)
        folder.read_assignments()
        folder.read_metrics()
        folder.read_history()
    assert operations == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_run_folder_that_nobody_may_write_to_can_be_read(undisturbed, tiny_set, tmp_path):
    here = tmp_path / "read-only"
    here.mkdir()
    for options in (["--bind", str(undisturbed), str(here)], ["-o", "remount,bind,ro", str(here)]):
        if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let root mount a folder")
    try:
        assert dcdc.load(here).predict(tiny_set.images).shape == (48,)
        command = [sys.executable, "-m", "dcdc", "evaluate", str(here)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["umount", str(here)], check=True)
