"""Two that write one folder, and readers beside a writer, as real processes."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dcdc
from dcdc.cli import main
from dcdc.errors import InputError
from dcdc.report import write_report
from dcdc.run import run  # noqa: F401 - imported once, before processes are forked
from dcdc.run_folder import RunFolder
from dcdc.runtime.folder_lock import LOCK


@pytest.fixture(scope="module")
def start(forked):
    """A command in a process of its own; `said()` is its stderr."""

    def call(folder: Path, *arguments: object):
        said = folder / f"stderr-{time.monotonic_ns()}"

        def command() -> None:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - pytest has the other
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.argv = ["dcdc", *map(str, arguments)]
            main()

        process = forked(command)
        process.said = said.read_text
        return process

    return call


def ended(process) -> int:
    process.join(120)
    return process.exitcode


def wait_for(condition, process) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.is_alive(), process.said()
        assert time.monotonic() < deadline
        time.sleep(0.001)


def answer(run_path: Path) -> dict:
    return pq.read_table(run_path / "assignments.parquet").to_pydict()


def epochs(run_path: Path) -> int:
    file = run_path / "history.jsonl"
    return file.read_text().count("\n") if file.exists() else 0


@pytest.fixture(scope="module")
def fit(start, tiny_file, tiny_flags):
    def call(folder: Path, *more: object):
        fixed = ["--run", folder / "run", "--no-report", "--quiet"]
        data = [] if "--resume" in more else [tiny_file, *tiny_flags]
        return start(folder, "fit", *data, *fixed, *more)

    return call


@pytest.fixture(scope="module")
def undisturbed(fit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    process = fit(folder)
    assert ended(process) == 0, process.said()
    return folder / "run"


def test_the_second_to_write_is_refused_and_names_the_first(fit, start, undisturbed, tmp_path):
    first = fit(tmp_path)
    run_path = tmp_path / "run"
    wait_for(lambda: epochs(run_path) >= 1, first)
    os.kill(first.pid, signal.SIGSTOP)  # alive, whoever comes when
    others = [
        fit(tmp_path),
        fit(tmp_path, "--resume"),
        fit(tmp_path, "--overwrite"),
        start(tmp_path, "report", run_path, "--quiet"),
    ]
    for other in others:
        assert ended(other) == 2
        assert re.fullmatch(
            rf"dcdc: another process is working in {run_path} \(process {first.pid} on \S+, since "
            r"[-0-9]+ [:0-9]+[-+]\d\d:\d\d\): wait for it, or choose another by --run\n",
            other.said(),
        ), other.said()
    os.kill(first.pid, signal.SIGCONT)
    assert ended(first) == 0, first.said()
    assert answer(run_path) == answer(undisturbed)
    assert epochs(run_path) == 4
    assert not (run_path / LOCK).exists()


def disturb(fit, folder: Path, undisturbed: Path) -> list[str]:
    """Two begin at the same moment, and readers look on: what the readers were told."""
    run_path = folder / "run"
    both = [fit(folder) for _ in range(2)]
    told: list[str] = []
    while any(process.is_alive() for process in both):
        for read in (dcdc.load, lambda path: RunFolder.open(path).read_assignments()):
            try:
                read(run_path)
            except InputError as error:
                told.append(str(error))
    codes = sorted(ended(process) for process in both)
    assert codes == [0, 2], [process.said() for process in both]
    (refused,) = (process for process in both if process.exitcode)
    (done,) = (process for process in both if not process.exitcode)
    assert f"(process {done.pid} on " in refused.said() or "exists" in refused.said()
    assert answer(run_path) == answer(undisturbed)
    assert epochs(run_path) == 4
    assert not list(run_path.rglob(".*"))
    return told


def test_two_begin_at_once_and_readers_look_on(fit, undisturbed, tmp_path):
    told = disturb(fit, tmp_path, undisturbed)
    assert told
    assert all(re.search("is not a run folder|no model yet|no assignments yet", t) for t in told)


@pytest.mark.slow
def test_two_hundred_times(fit, undisturbed, tmp_path):
    for number in range(200):
        (tmp_path / str(number)).mkdir()
        disturb(fit, tmp_path / str(number), undisturbed)


def test_a_killed_run_is_gone_on_with_at_once(fit, undisturbed, tmp_path):
    first = fit(tmp_path)
    wait_for(lambda: epochs(tmp_path / "run") >= 2, first)
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    assert (tmp_path / "run" / LOCK).exists()
    again = fit(tmp_path, "--resume")
    assert ended(again) == 0, again.said()
    assert answer(tmp_path / "run") == answer(undisturbed)


def test_a_report_beside_a_report_is_refused(start, undisturbed, forked, tmp_path):
    def hold() -> None:
        with RunFolder.open(undisturbed).writing():
            time.sleep(600)

    holder = forked(hold)
    lock = undisturbed / LOCK
    wait_for(lambda: lock.exists() and lock.read_text().endswith("\n"), holder)  # it has signed
    with pytest.raises(InputError, match="another process is working in"):
        write_report(RunFolder.open(undisturbed))
    exported = start(tmp_path, "export", undisturbed, "--format", "torch")
    assert ended(exported) == 2
    assert "another process is working in" in exported.said()
    dcdc.load(undisturbed)
    holder.kill()
    holder.join()
