"""`dcdc compare` from end to end, on a tiny set."""

import csv
import json
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dcdc.methods import METHODS, register_method

SMALL = [
    *("--set", "dcdc.heads.epochs=4", "--set", "dcdc.network.over_clusters=6"),
    *("--set", "dcdc.heads.n_repeats=1", "--set", "dcdc.train.checkpoint_every=1"),
    *("--set", "dcdc.heads.batch_size=16", "--device", "cpu"),
]
WRITE_PAGE = "dcdc.experiments.compare_tables.write_page"
"""Drawing takes longer than such runs."""


@pytest.mark.slow
def test_a_killed_one_goes_on_and_the_next_call_runs_nothing(dcdc, tiny_file, tmp_path):
    words = ["compare", str(tiny_file), "--methods", "k-means,dcdc", *SMALL, "--out", "out"]
    command = [sys.executable, "-m", "dcdc", *words, "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not any(path.read_text() for path in tmp_path.glob("out/dcdc-*/run/history.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list(tmp_path.glob("out/*/metrics.json"))) == 1

    code, first, err = dcdc(*words)
    assert code == 0, err
    assert err.count(": going on") == 1
    assert ": training" not in err
    assert "K-Means" in first
    (history,) = tmp_path.glob("out/dcdc-*/run/history.jsonl")
    epochs = [json.loads(line)["epoch"] for line in history.read_text().splitlines()]
    assert epochs == [1, 2, 3, 4]
    for name in ("compare.md", "compare.tex", "compare.csv", "compare.html"):
        assert f"written: out/{name}" in first
        assert (tmp_path / "out" / name).stat().st_size > 200
    with (tmp_path / "out/compare.csv").open() as file:
        table = list(csv.DictReader(file))
    (metrics,) = tmp_path.glob("out/k-means-*/metrics.json")
    assert float(table[0]["acc"]) == json.loads(metrics.read_text())["scores"]["acc"]
    page = (tmp_path / "out/compare.html").read_text()
    assert page.count("<script") == 2  # data, and what shows two methods by them
    assert "http://" not in page.replace("http://www.w3.org", "")

    files = sorted(tmp_path.glob("out/*/metrics.json"))
    times = [file.stat().st_mtime_ns for file in files]
    code, second, err = dcdc(*words, "--quiet")
    assert (code, err) == (0, "")
    assert second == first
    assert [file.stat().st_mtime_ns for file in files] == times


@pytest.mark.slow
def test_a_method_that_fails_is_one_line_and_the_others_go_on(
    dcdc, tiny_file, tmp_path, monkeypatch
):
    monkeypatch.setattr(WRITE_PAGE, lambda *_: None)
    code, out, err = dcdc(
        *("compare", tiny_file, "--methods", "dcdc,k-means", "--device", "cpu"),
        *("--set", "dcdc.heads.batch_size=49", "--dataset", "cifar10"),
    )
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("dcdc: 1 of 2 runs are left, 1 failed: a batch of 49 is larger")
    assert "images: lower --set dcdc.heads.batch_size; go on with: dcdc compare" in last
    assert "Traceback" not in err
    (row,) = [line for line in out.splitlines() if line.startswith("DCDC")]
    assert row.split()[:8] == ["DCDC", "-", "-", "-", "-", ".585", ".699", ".506"]
    assert row.split()[8:] == ["200", "epochs", "-", "-", "-", "failed"]
    (row,) = [line for line in out.splitlines() if line.startswith("K-Means")]
    assert row.split()[:8] == ["K-Means", "0", "1.000", "1.000", "1.000", ".087", ".229", ".049"]
    assert [path.name for path in (tmp_path / "runs/compare/cifar10").glob("*-seed-0")] == [
        "k-means-seed-0"
    ]


@pytest.mark.slow
def test_a_terminal_shows_how_many_runs_are_done_and_which_one_trains(on_terminal, tiny_file):
    shown = on_terminal(
        *("compare", tiny_file, "--methods", "k-means,ae", "--set", "ae.n_steps=200"),
        *("--device", "cpu", "--out", tiny_file.parent / "watched"),
        columns=80,
    )
    assert "runs" in shown
    assert "0/2" in shown
    assert "1/2" in shown
    assert "K-Means, seed 0" in shown
    assert "AE, seed 0" in shown
    assert "epoch" in shown


def test_a_method_from_outside_the_package_is_compared(
    dcdc, tiny_file, tmp_path_factory, monkeypatch
):
    monkeypatch.setattr(WRITE_PAGE, lambda *_: None)
    outside = tmp_path_factory.mktemp("outside")
    (outside / "by_number.py").write_text(
        "import numpy as np\n"
        "from dcdc.methods import Clustering\n"
        "def cluster(image_set, n_clusters, seed, context, *, offset: int = 0):\n"
        "    return Clustering((np.arange(image_set.n_images) + offset) % n_clusters)\n"
    )
    monkeypatch.syspath_prepend(outside)
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))
    register_method("by-number", import_module("by_number").cluster, title="By number")
    words = ("--methods", "by-number", "--set", "by-number.offset=1", "--out", "out")
    code, out, err = dcdc("compare", tiny_file, *words, "--device", "cpu")
    assert code == 0, err
    (row,) = [line for line in out.splitlines() if line.startswith("By number")]
    assert row.split()[2:6] == ["0", "1.000", "1.000", "1.000"]
    assert Path("out/by-number-offset-1-seed-0/metrics.json").exists()


@pytest.mark.slow
def test_a_benchmarks_own_number_of_classes_tells_its_labels(dcdc, write_hub, monkeypatch):
    monkeypatch.setattr(WRITE_PAGE, lambda *_: None)
    hub = write_hub(fine_label=range(48), coarse_label=[number % 20 for number in range(48)])
    words = ("--methods", "k-means", "--dataset", "cifar100-20", "--device", "cpu")
    code, out, err = dcdc("compare", hub, *words)
    assert code == 0, err
    assert "CIFAR-100-20: 48 images of 8x8x1, 20 clusters" in out
    (row,) = [line for line in out.splitlines() if line.startswith("K-Means")]
    assert "-" not in row.split()[1:8]


def test_minutes_begin_nothing_when_they_are_over(dcdc, tiny_file, tmp_path):
    code, out, err = dcdc("compare", tiny_file, "--seeds", "2", "--minutes", "1e-9")
    assert code == 3
    assert "--minutes are over, state saved; " in err
    assert "runs are left; go on with: dcdc compare" in err
    assert "written" not in out
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_comparison_is_left_alone(dcdc, tiny_file, tmp_path):
    folder = tmp_path / "runs/compare/tiny/k-means-seed-0"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"method": "sc"}))
    code, _, err = dcdc("compare", tiny_file, "--methods", "k-means")
    assert code == 1
    assert "holds a run of something else (method is 'k-means', was 'sc'" in err
    assert list(folder.iterdir()) == [folder / "config.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.npz",), "'nowhere.npz' does not exist"),
        (("FILE", "--methods", "kmeans"), "unknown method 'kmeans'; did you mean 'k-means'?"),
        (("FILE", "--methods", ","), "names none: give all, or some of k-means, "),
        (("FILE", "--seeds", "0"), "--seeds is 0: give at least 1"),
        (("FILE", "--minutes", "0"), "--minutes is 0.0: give a number above 0"),
        (("FILE", "--clusters", "1"), "dcdc: --clusters 1 must be at least 2"),
        (("FILE", "--clusters", "49"), "49 clusters for 48 images: give --clusters from 2 to 48"),
        (("FILE", "--device", "gpu"), "not one of auto, cpu, cuda, mps"),
        (("FILE", "--on-bad", "ignore"), "not one of refuse, skip"),
        (("FILE", "--dataset", "cifr10"), "unknown data set 'cifr10'; did you mean 'cifar10'?"),
        (("FILE", "--set", "k-means.n_inti=3"), "did you mean 'n_init'?"),
        (("FILE", "--set", "n_init=3"), "--set n_init=3 is not METHOD.KEY=VALUE"),
        (("FILE", "--set", "dcdc.heads.epochs=0"), "--set dcdc.heads.epochs=0 must be at least 1"),
        (
            ("FILE", "--set", "dcdc.data.size=9"),
            "data.size is no setting of one method: use --size",
        ),
        (("FILE", "--out", "FILE"), "is a file: give a folder"),
        (("BLIND",), "nothing says how many clusters to find: give --clusters 5 for a first"),
        (("FLAT", "--clusters", "2"), "all 20 images are the same"),
        (("ONE", "--clusters", "2"), "there is one image alone, and nothing to group: give more"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    dcdc, tiny_file, tmp_path_factory, tmp_path, arguments, message
):
    elsewhere = tmp_path_factory.mktemp("images")
    np.save(elsewhere / "blind.npy", np.load(tiny_file)["images"])
    np.save(elsewhere / "flat.npy", np.full((20, 8, 8), 7, np.uint8))
    np.save(elsewhere / "one.npy", np.zeros((1, 8, 8), np.uint8))
    places = {
        "FILE": tiny_file,
        "BLIND": elsewhere / "blind.npy",
        "FLAT": elsewhere / "flat.npy",
        "ONE": elsewhere / "one.npy",
    }
    code, out, err = dcdc("compare", *(places.get(word, word) for word in arguments))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("dcdc: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []
