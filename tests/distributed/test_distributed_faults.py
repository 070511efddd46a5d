"""Several real processes of the command line, with one of them killed, told to stop, or wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peers import finish, free_port, start

from dcdc.engine.checkpoints import list_checkpoints

FLAGS = [
    *("--epochs", "9", "--batch-size", "17", "--device", "cpu", "--clusters", "3", "--no-report"),
    *("--set", "network.over_clusters=6", "--set", "heads.n_repeats=2", "--set", "train.threads=1"),
    *("--set", "heads.over_clustering_first=0", "--set", "train.checkpoint_every=3"),
]


def torchrun(*arguments: object, size: int = 2, restarts: int = 0, **more: str) -> subprocess.Popen:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size)]
    launcher += ["--max-restarts", str(restarts), "--master-port", str(free_port())]
    return subprocess.Popen(
        [*launcher, *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "DCDC_TIMEOUT": "20"} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def fit(source: Path, run: Path, *more: object, **how) -> subprocess.Popen:
    return torchrun("-m", "dcdc", "fit", source, "--run-folder", run, *FLAGS, *more, **how)


def said(process: subprocess.Popen) -> tuple[int, str, list[str]]:
    """Exit code, stdout, and what dcdc (not torchrun) complained of."""
    out, err = process.communicate(timeout=150)
    return process.returncode, out, [line for line in err.splitlines() if "dcdc: " in line] or [err]


def workers(agent: subprocess.Popen) -> list[int]:
    """Process numbers of torchrun's children, by rank."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            content = (folder / "environ").read_bytes()
        except (OSError, ValueError, IndexError):
            continue
        if parent == agent.pid:
            pairs = dict(part.partition("=")[::2] for part in content.decode().split("\0"))
            if "RANK" in pairs:
                found[int(pairs["RANK"])] = int(folder.name)
    return [found[rank] for rank in sorted(found)]


def wait_for(condition, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def epochs_done(run: Path) -> int:
    lines = run / "history.jsonl"
    return lines.read_text().count("\n") if lines.exists() else 0


def answer(run: Path) -> dict:
    return pq.read_table(run / "assignments.parquet").to_pydict()


def history(run: Path) -> list[dict]:
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"], line["checksum"]  # which is of both
    return lines


@pytest.fixture(scope="module")
def undisturbed(tiny_file, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    command = ["-m", "dcdc", "fit", str(tiny_file), "--run", str(run), *FLAGS]
    (out, err), (others_out, others_err) = finish(start(command, 2))
    assert "run folder: " in out
    assert "images resident" in err
    assert not others_out  # the first alone speaks
    assert "images" not in others_err
    return run


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_is_started_again_and_nothing_is_lost(
    tiny_file, tmp_path, undisturbed, rank
):
    run = tmp_path / "killed"
    process = fit(tiny_file, run, restarts=1)
    wait_for(lambda: epochs_done(run) >= 4, process)
    os.kill(workers(process)[rank], signal.SIGKILL)
    code, _, complaints = said(process)
    assert code == 0, complaints
    assert len(complaints) == 1
    assert f"process {rank} of 2 was lost" in complaints[0]
    assert "torchrun starts the processes again, and the run goes on after epoch" in complaints[0]
    assert answer(run) == answer(undisturbed)
    assert history(run) == history(undisturbed)


@pytest.mark.slow
def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(
    tiny_file, tmp_path, undisturbed
):
    """The first process ends itself with the tensors of epoch 6 half on disk, once."""
    run = tmp_path / "half"
    program = tmp_path / "half.py"
    program.write_text("""
import os, sys
import dcdc.engine.checkpoints as checkpoints
whole = checkpoints.save_tensors
def half(path, tensors, *rest):
    whole(path, tensors, *rest)
    if "epoch-00006" in str(path) and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        path.write_bytes(path.read_bytes()[:1000])
        os.kill(os.getpid(), 9)
checkpoints.save_tensors = half
from dcdc.cli import main
main()
""")
    process = torchrun(program, "fit", tiny_file, "--run-folder", run, *FLAGS, restarts=1)
    code, _, complaints = said(process)
    assert code == 0, complaints
    assert "the run goes on after epoch 3" in complaints[0]
    assert answer(run) == answer(undisturbed)
    assert history(run) == history(undisturbed)
    assert not list((run / "checkpoint").glob(".*"))


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(tiny_file, tmp_path, undisturbed):
    """Killed with two, gone on with three, finished by one: the curve is that of two."""
    run = tmp_path / "changing"
    process = fit(tiny_file, run)
    wait_for(lambda: len(list_checkpoints(run / "checkpoint")) >= 1, process)
    os.kill(workers(process)[1], signal.SIGKILL)
    code, _, complaints = said(process)
    assert code == 1
    assert "start the same command again with --resume" in complaints[0]
    process = fit(tiny_file, run, "--resume", size=3)
    wait_for(lambda: len(list_checkpoints(run / "checkpoint")) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    assert said(process)[0] != 0
    alone = [sys.executable, "-m", "dcdc", "fit", str(tiny_file), "--run", str(run), "--resume"]
    assert subprocess.run([*alone, *FLAGS], capture_output=True, check=False).returncode == 0
    assert answer(run)["cluster"] == answer(undisturbed)["cluster"]
    assert [line["epoch"] for line in history(run)] == list(range(1, 10))


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_process_stops_all_at_the_same_step_with_the_state_saved(
    tiny_file, tmp_path, undisturbed, rank
):
    run = tmp_path / "stopped"
    process = fit(tiny_file, run)
    wait_for(lambda: epochs_done(run) >= 4, process)
    os.kill(workers(process)[rank], signal.SIGTERM)
    code, _, complaints = said(process)
    assert code == 1  # torchrun's own
    assert len(complaints) == 1
    assert "stopped by SIGTERM after" in complaints[0]
    process = fit(tiny_file, run, "--resume")
    code, _, complaints = said(process)
    assert code == 0, complaints
    assert answer(run) == answer(undisturbed)
    assert history(run) == history(undisturbed)


@pytest.mark.slow
def test_a_fault_of_one_process_is_told_once_and_ends_all(tiny_file, tmp_path):
    """The second process alone sees other images."""
    program = tmp_path / "other.py"
    program.write_text("""
import os
import dcdc.data
if os.environ["RANK"] == "1":
    whole = dcdc.data.load_data
    def other(*arguments, **how):
        found = whole(*arguments, **how)
        found.images[0] ^= 1
        return found
    dcdc.data.load_data = other
from dcdc.cli import main
main()
""")
    run = tmp_path / "run"
    process = torchrun(program, "fit", tiny_file, "--run-folder", run, *FLAGS)
    started = time.monotonic()
    code, out, complaints = said(process)
    assert code == 1
    assert time.monotonic() - started < 60
    assert not out
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith("dcdc: process 1 of 2: process 1 has images")
    assert "start all with the same command, code and images" in complaints[0]
