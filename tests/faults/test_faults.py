"""Faults really injected into a real process: kills, signals, full disks, damaged files."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dcdc.engine.checkpoints import list_checkpoints


def command(source: Path, run: Path, flags: list[str], *more: str) -> list[str]:
    names = ["dcdc", "fit", str(source), "--run", str(run), "--no-report"]
    return [sys.executable, "-m", *names, *flags, *more]


def long_flags(flags: list[str]) -> list[str]:
    return [*flags, "--epochs", "16", "--set", "train.checkpoint_every=3"]


def finish(arguments: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, **options)


def go_on(run: Path) -> subprocess.CompletedProcess:
    flags = ["--run", str(run), "--resume", "--no-report"]
    return finish([sys.executable, "-m", "dcdc", "fit", *flags])


def wait_for(condition, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def answer(run: Path) -> dict:
    return pq.read_table(run / "assignments.parquet").to_pydict()


def history(run: Path) -> list[dict]:
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"], line["checksum"]  # which is of both
    return lines


@pytest.fixture(scope="module")
def undisturbed(tiny_file, tiny_flags, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    result = finish(command(tiny_file, run, long_flags(tiny_flags)))
    assert result.returncode == 0, result.stderr
    return run


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        (signal.SIGKILL, -9),
    ],
)
def test_a_stopped_run_resumes_and_ends_as_an_undisturbed_one(
    tiny_file, tiny_flags, tmp_path, undisturbed, number, code
):
    run = tmp_path / "stopped"
    arguments = command(tiny_file, run, long_flags(tiny_flags))
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = run / "history.jsonl"
    wait_for(lambda: lines.exists() and lines.read_text().count("\n") >= 5, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert not (run / "metrics.json").exists()
    if number != signal.SIGKILL:
        last = err.strip().splitlines()[-1]
        assert f"stopped by {number.name} after" in last
        assert f"go on with: dcdc fit --run {run} --resume" in last
    resumed = finish(
        [sys.executable, "-m", "dcdc", "fit", "--run", str(run), "--resume", "--no-report"]
    )
    assert resumed.returncode == 0, resumed.stderr
    assert answer(run) == answer(undisturbed)
    assert history(run) == history(undisturbed)


@pytest.mark.slow
def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(
    tiny_file, tiny_flags, tmp_path, undisturbed
):
    """The writer kills itself with the tensors of epoch 3 half on disk."""
    run = tmp_path / "killed"
    program = """
import os, sys
import dcdc.engine.checkpoints as checkpoints
whole = checkpoints.save_tensors
def half(path, tensors, *rest):
    whole(path, tensors, *rest)
    if "epoch-00003" in str(path):
        path.write_bytes(path.read_bytes()[:1000])
        os.kill(os.getpid(), 9)
checkpoints.save_tensors = half
from dcdc.cli import main
main()
"""
    arguments = command(tiny_file, run, long_flags(tiny_flags))[3:]
    killed = finish([sys.executable, "-c", program, *arguments])
    assert killed.returncode == -9
    leftovers = [path.name for path in (run / "checkpoint").iterdir()]
    assert any(name.endswith(".partial") for name in leftovers)
    resumed = finish(
        [sys.executable, "-m", "dcdc", "fit", "--run", str(run), "--resume", "--no-report"]
    )
    assert resumed.returncode == 0, resumed.stderr
    assert answer(run) == answer(undisturbed)
    assert not list((run / "checkpoint").glob(".*"))


@pytest.mark.slow
def test_a_truncated_checkpoint_falls_back_and_says_so(
    tiny_file, tiny_flags, tmp_path, undisturbed
):
    run = tmp_path / "broken"
    arguments = command(tiny_file, run, [*long_flags(tiny_flags), "--epochs", "6"])
    assert finish(arguments).returncode == 0
    newest = list_checkpoints(run / "checkpoint")[-1] / "tensors.safetensors"
    newest.write_bytes(newest.read_bytes()[:-50])
    resumed = finish(command(tiny_file, run, long_flags(tiny_flags), "--resume"))
    assert resumed.returncode == 0, resumed.stderr
    assert "epoch-00006-step-000000 is damaged" in resumed.stderr
    assert answer(run) == answer(undisturbed)


def test_a_loss_that_is_not_finite_ends_with_the_cause(tiny_file, tiny_flags, tmp_path):
    flags = [*long_flags(tiny_flags), "--set", "heads.learning_rate=1e30"]
    result = finish(command(tiny_file, tmp_path / "run", flags))
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("dcdc: the loss is not finite in epoch 1")
    assert "learning_rate" in last
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    tiny_file, tiny_flags, tmp_path, undisturbed
):
    """A file size limit below a checkpoint's size: the kernel refuses the write."""
    run = tmp_path / "full"
    arguments = command(tiny_file, run, long_flags(tiny_flags))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    result = finish(arguments, preexec_fn=limit)
    assert result.returncode == 2, result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("dcdc: cannot read or write")
    assert "File too large" in last
    assert "Traceback" not in result.stderr
    assert list((run / "checkpoint").iterdir()) == []
    resumed = finish([*arguments, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    assert answer(run) == answer(undisturbed)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full(tiny_file, tiny_flags, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        result = finish(command(tiny_file, disk / "run", tiny_flags))
        assert result.returncode == 2
        assert "No space left on device" in result.stderr.strip().splitlines()[-1]
        assert "Traceback" not in result.stderr
    finally:
        subprocess.run(["umount", str(disk)], check=True)
