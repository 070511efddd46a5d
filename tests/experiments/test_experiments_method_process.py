"""Real children on a tiny file: watched, stopped, killed, crashing."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dcdc.errors import Interrupted, TrainingError
from dcdc.methods import METHODS, Method
from dcdc.run import load

SMALL = [
    *("dcdc.epochs=3", "dcdc.network.over_clusters=6"),
    *("dcdc.heads.n_repeats=1", "dcdc.train.checkpoint_every=1", "dcdc.heads.batch_size=16"),
]


@pytest.fixture
def method_file(tmp_path, monkeypatch):
    """A method of a test's own, `own`, in a module that only this test knows."""

    def write(body: str) -> None:
        module = f"method_of_{tmp_path.name}"
        (tmp_path / f"{module}.py").write_text(
            "import os, signal, time\n"
            "import numpy as np\n"
            "from dcdc.methods import Clustering\n"
            "def cluster(image_set, n_clusters, seed, context):\n" + body + "\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        method = Method("own", "Own", f"{module}:cluster")
        monkeypatch.setitem(METHODS._entries, "own", method)

    return write


def test_a_run_leaves_its_answer_and_its_figures(parent, make_run):
    ballast = bytearray(b"x") * 700_000_000  # memory of the parent is not the child's
    run = make_run("k-means", "k-means.n_init=2")
    parent.children.work(run, False)
    standing = run.standing()
    assert standing.state == "done"
    metrics = standing.metrics
    assert metrics["scores"]["acc"] == 1
    assert metrics["health"]["active_clusters"] == 3
    assert metrics["epochs"] is None
    assert 50 < metrics["peak_memory_mb"] < len(ballast) / 2**20
    assert metrics["device"].startswith("cpu")
    table = pq.read_table(run.folder / "assignments.parquet").to_pydict()
    assert len(table["name"]) == 48
    assert set(table["cluster"]) == {0, 1, 2}
    assert set(table["confidence"]) == {1}
    assert sorted(path.name for path in run.folder.iterdir()) == [
        *("assignments.parquet", "config.json", "metrics.json"),
    ]
    stored = json.loads((run.folder / "config.json").read_text())
    assert (stored["method"], stored["seed"], stored["settings"]) == ("k-means", 0, {"n_init": 2})


@pytest.mark.slow
def test_dcdc_is_watched_stopped_gone_on_with_and_leaves_a_whole_run(parent, make_run):
    run = make_run("dcdc", *SMALL)

    def stop():
        parent.seen.after_epoch = lambda: None
        signal.raise_signal(signal.SIGINT)

    parent.seen.after_epoch = stop
    with pytest.raises(Interrupted) as stopped:
        parent.children.work(run, False)
    assert stopped.value.signal == "SIGINT"
    assert run.standing().state == "begun"
    parent.children.work(run, True)
    metrics = run.standing().metrics
    assert metrics["epochs"] == 3
    assert metrics["training_seconds"] > 0
    assert parent.seen.epochs[-1] == 3
    assert parent.seen.steps > 0
    own = run.folder / "run"
    history = [json.loads(line) for line in (own / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in history] == [1, 2, 3]
    assert load(own).config["data"]["source"] == run.task.data.source


def test_a_child_leaves_when_its_parent_is_killed(make_run, method_file, tmp_path):
    method_file(
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    run = make_run("own")
    job = json.dumps(run.job())
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'dcdc.experiments.method_child'], "
        "stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)\n"
        f"child.stdin.write({job.encode()!r} + b'\\n'); child.stdin.flush(); time.sleep(600)\n"
    )
    grandparent = subprocess.Popen([sys.executable, "-S", "-c", program])
    try:
        pid = wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    finally:
        grandparent.kill()
        grandparent.wait()
    wait_for(lambda: not is_running(int(pid)))
    assert run.standing().state == "begun"


def test_a_method_that_crashes_is_one_line_and_its_words_are_kept(parent, make_run, method_file):
    method_file("    raise ZeroDivisionError('ours')")
    run = make_run("own")
    with pytest.raises(TrainingError, match=r"ended with ZeroDivisionError: ours; more in .*txt$"):
        parent.children.work(run, False)
    assert "Traceback" in (run.folder / "error.txt").read_text()
    assert run.standing().state == "begun"


def test_a_method_that_is_killed_is_one_line(parent, make_run, method_file):
    method_file("    os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(TrainingError, match="ended by SIGKILL, as where memory runs out"):
        parent.children.work(make_run("own"), False)


@pytest.mark.slow
def test_what_a_method_prints_is_no_event(parent, make_run, method_file):
    method_file(
        "    print('{not an event'); os.system('echo nor this')\n"
        "    return Clustering(np.arange(48) % n_clusters)"
    )
    run = make_run("own")
    parent.children.work(run, False)
    assert run.standing().state == "done"


@pytest.mark.slow
def test_who_does_not_stop_when_asked_is_killed_after_a_while(parent, make_run, method_file):
    method_file(
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    context.observer.note('deaf'); time.sleep(600)"
    )
    children = replace(parent.children, grace=0.5, is_over=lambda: bool(parent.seen.notes))
    began = time.monotonic()
    with pytest.raises(Interrupted):
        children.work(make_run("own"), False)
    assert time.monotonic() - began < 300


@pytest.mark.slow
def test_a_child_hears_its_parent_where_ctrl_c_is_ignored(parent, make_run, method_file, tmp_path):
    """As in the background of a shell: else a deadline would end in waiting and a kill."""
    heard = tmp_path / "heard"
    method_file(
        "    try:\n"
        "        context.observer.note('there'); time.sleep(600)\n"
        "    except KeyboardInterrupt:\n"
        f"        open({str(heard)!r}, 'w').close()\n"
        "        raise"
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    children = replace(parent.children, is_over=lambda: bool(parent.seen.notes))
    with pytest.raises(Interrupted):
        children.work(make_run("own"), False)
    assert heard.exists()


def wait_for(found, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
