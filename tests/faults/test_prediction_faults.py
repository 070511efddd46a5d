"""Predictions stopped, starved and killed as real processes, then gone on with."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import dcdc.run
from dcdc.cli import main
from dcdc.data import decoded
from dcdc.engine import network_on_store
from dcdc.prediction import session  # noqa: F401
from dcdc.runtime.journal import Appender

N_IMAGES = 1500


@pytest.fixture(scope="module")
def dcdc(forked, tmp_path_factory):
    """Starts the command line in a process of its own, a hundred images at a time."""
    said = tmp_path_factory.mktemp("said") / "stderr"

    def start(*arguments: object, pause: float = 0, file_limit: int = 0):
        def command() -> None:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - pytest has the other
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if file_limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
            decoded._BLOCK_ROWS = network_on_store.CHUNK = 100
            append = Appender.append

            def slowly(*block, **more):
                append(*block, **more)
                time.sleep(pause)

            Appender.append = slowly
            sys.argv = ["dcdc", *map(str, arguments)]
            main()

        process = forked(command)
        process.said = said.read_text
        return process

    return start


@pytest.fixture(scope="module")
def finish(dcdc):
    """The exit code of a command, and what it says on stderr."""

    def call(*arguments: object, **how) -> tuple[int, str]:
        process = dcdc(*arguments, **how)
        process.join(120)
        return process.exitcode, process.said()

    return call


@pytest.fixture(scope="module")
def run(finish, tiny_file, tiny_flags, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    code, said = finish("fit", tiny_file, "--run", folder, "--no-report", *tiny_flags)
    assert code == 0, said
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images") / "photos"
    random = np.random.default_rng(0)
    for index in range(N_IMAGES):
        kind = folder / f"kind-{index % 3}"
        kind.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(kind / f"{index:04}.png")
    return folder


def command(run, photos, folder, suffix) -> list[object]:
    names = ["--out", folder / f"out.{suffix}", "--features", folder / "out.npy"]
    return ["predict", run, photos, *names, "--device", "cpu"]


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(finish, run, photos, tmp_path_factory):
    """The files of both formats, by format."""
    found = {}
    for suffix in ("csv", "parquet"):
        folder = tmp_path_factory.mktemp("undisturbed")
        assert finish(*command(run, photos, folder, suffix)) == (0, "")
        found[suffix] = contents(folder)
    return found


@pytest.mark.parametrize(
    ("number", "code", "suffix"),
    [
        (signal.SIGKILL, -9, "csv"),
        (signal.SIGKILL, -9, "parquet"),
        (signal.SIGINT, 130, "csv"),
        (signal.SIGTERM, 143, "parquet"),
        pytest.param(signal.SIGINT, 130, "parquet", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, "csv", marks=pytest.mark.slow),
    ],
)
def test_stopped_it_goes_on_and_ends_byte_for_byte_as_undisturbed(
    dcdc, finish, run, photos, undisturbed, tmp_path, number, suffix, code
):
    arguments = command(run, photos, tmp_path, suffix)
    process = dcdc(*arguments, pause=0.1)
    journal = tmp_path / f"out.{suffix}.partial" / "journal"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") >= 4):
        assert process.is_alive(), process.said()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == code, process.said()
    assert [path.name for path in tmp_path.iterdir()] == [f"out.{suffix}.partial"]
    if number != signal.SIGKILL:
        assert process.said().count("\n") == 1
        assert f"stopped by {number.name}: " in process.said()
        assert "the same command goes on from there" in process.said()
    code, said = finish(*arguments)
    assert code == 0, said
    assert "of 1,500 images were done before: going on with the rest" in said
    assert contents(tmp_path) == undisturbed[suffix]


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    finish, run, photos, undisturbed, tmp_path
):
    """A file size limit in the middle of the features: the kernel refuses the write."""
    arguments = command(run, photos, tmp_path, "csv")
    code, said = finish(*arguments, file_limit=1_000_000)
    assert (code, said.count("\n")) == (2, 1)
    assert "File too large" in said
    assert "the same command goes on with what is done" in said
    assert not (tmp_path / "out.csv").exists()
    _, said = finish(*arguments)
    assert "900 of 1,500 images were done before" in said
    assert contents(tmp_path) == undisturbed["csv"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full_and_one_that_cannot_be_written(finish, run, photos, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        code, said = finish(*command(run, photos, disk, "csv"))
        assert (code, said.count("\n")) == (2, 1)
        assert "No space left on device" in said
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        code, said = finish(*command(run, photos, disk / "new", "csv"))
        assert (code, said.count("\n")) == (2, 1)
        assert "Read-only file system" in said
    finally:
        subprocess.run(["umount", str(disk)], check=True)
