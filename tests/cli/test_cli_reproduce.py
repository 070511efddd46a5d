"""`dcdc reproduce` from end to end, on a tiny set with a tiny network."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

SHRUNK = [
    *("--set", "network.backbone=small", "--set", "data.size=8", "--set", "n_clusters=3"),
    *("--set", "network.mean=none", "--set", "network.std=none", "--set", "augment.resize_to=10"),
    *("--set", "train.threads=1", "--set", "train.checkpoint_every=1", "--device", "cpu"),
]
UNDRAWN = "--no-report"
"""Drawing takes longer than such a run."""
SMALL_BATCH = ("--set", "heads.batch_size=16", "--set", "network.over_clusters=6")


@pytest.fixture(scope="session")
def colour_file(tmp_path_factory):
    """120 images of 8x8x3, three kinds."""
    random = np.random.default_rng(0)
    kinds = np.zeros((3, 8, 8, 3))
    kinds[0, ::2], kinds[1, :, ::2], kinds[2, 2:6, 2:6] = 1, 1, 1
    targets = np.arange(120) % 3
    images = (200 * kinds[targets] + random.uniform(0, 50, (120, 8, 8, 3))).astype(np.uint8)
    path = tmp_path_factory.mktemp("images") / "colour.npz"
    np.savez(path, images=images, targets=targets)
    return path


@pytest.fixture
def repeat(colour_file):
    """The arguments of a whole small table: two rows of one data set."""
    where = ("--dataset", "cifar100-20", "--data", f"cifar100-20={colour_file}")
    return ["reproduce", "repeat", *where, "--epochs", "2", *SHRUNK, *SMALL_BATCH]


def runs_of(tmp_path):
    return sorted((tmp_path / "runs/reproduce/cifar100-20").glob("*/metrics.json"))


@pytest.mark.slow
def test_the_first_call_trains_and_the_second_trains_nothing(dcdc, repeat, tmp_path):
    code, out, err = dcdc(*repeat, "--list")
    assert (code, err) == (0, "")
    assert [line.split()[:3] for line in out.splitlines()] == [["missing", "dcdc", "fit"]] * 2
    assert not (tmp_path / "runs").exists()

    code, first, err = dcdc(*repeat)
    assert code == 0, err
    assert err.count(": training") == 2
    assert "no sample repeat  0      2 of 200 epochs" in first
    assert ".310  .349  .179" in first
    files = runs_of(tmp_path)
    assert len(files) == 2
    assert all((file.parent / "report.html").exists() for file in files)
    times = [file.stat().st_mtime_ns for file in files]
    (page,) = (tmp_path / "runs/reproduce").glob("repeat-*.md")
    (data,) = (tmp_path / "runs/reproduce").glob("repeat-*.json")
    assert f"written: {page.relative_to(tmp_path)}" in first
    assert "| Tiny-ImageNet | no sample repeat | - |" in page.read_text()
    rows = json.loads(data.read_text())["rows"]
    stored = json.loads(files[0].read_text())
    (ours,) = [
        run for row in rows for run in row["runs"] if run["folder"].endswith(files[0].parent.name)
    ]
    last = {"epoch": 2} | {key: stored["scores"][key] for key in ("nmi", "acc", "ari")}
    assert ours["chosen"]["last"] == last
    assert ours["training_seconds"] == stored["training_seconds"]

    code, second, err = dcdc(*repeat)
    assert (code, err) == (0, "")
    assert second == first
    assert [file.stat().st_mtime_ns for file in files] == times
    _, out, _ = dcdc(*repeat, "--list")
    assert out.count("done ") == 2


@pytest.mark.slow
def test_a_killed_one_goes_on(dcdc, repeat, tmp_path):
    repeat[repeat.index("--epochs") + 1] = "6"
    repeat.append(UNDRAWN)
    command = [sys.executable, "-m", "dcdc", *repeat, "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    folder = tmp_path / "runs/reproduce/cifar100-20"
    deadline = time.monotonic() + 60
    while not any(path.read_text().count("\n") >= 2 for path in folder.glob("*/history.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert runs_of(tmp_path) == []
    code, out, _ = dcdc(*repeat, "--list")
    assert [line.split()[0] for line in out.splitlines()] == ["begun", "missing"]
    assert out.splitlines()[0].endswith("--resume")
    code, out, err = dcdc(*repeat)
    assert code == 0, err
    assert err.count(": going on") == 1
    assert err.count(": training") == 1
    for file in runs_of(tmp_path):
        epochs = [
            json.loads(line)["epoch"]
            for line in (file.parent / "history.jsonl").read_text().splitlines()
        ]
        assert epochs == list(range(1, 7))


def test_failing_runs_do_not_stop_the_others_and_the_exit_code_says_so(dcdc, colour_file):
    """Batches above 120 images cannot be made of 120."""
    code, out, err = dcdc(
        *("reproduce", "batch-size", "--data", f"cifar100-20={colour_file}", "--epochs", "1"),
        *SHRUNK,
        UNDRAWN,
    )
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("dcdc: 5 of 6 runs are left, 5 failed: a batch of 200 is larger")
    assert "go on with: dcdc reproduce batch-size" in last
    assert "Traceback" not in err
    rows = [line for line in out.splitlines() if "batch of" in line and "CIFAR" in line]
    assert "1 of 200 epochs" in rows[0]
    assert rows[0].split()[-1] == "s"
    assert ".310  .349  .179" in rows[1]
    assert rows[1].split()[-1] == "-"


@pytest.mark.slow
def test_minutes_begin_nothing_when_they_are_over(dcdc, repeat, tmp_path):
    code, out, err = dcdc(*repeat, "--minutes", "1e-9")
    assert code == 3
    assert "--minutes are over, state saved; 2 of 2 runs are left; go on with: dcdc" in err
    assert "CIFAR-100-20" in out
    assert runs_of(tmp_path) == []
    code, _, err = dcdc(*repeat, "--minutes", "60", UNDRAWN)
    assert code == 0, err
    files = runs_of(tmp_path)
    assert len(files) == 2
    assert not any((file.parent / "report.html").exists() for file in files)


@pytest.mark.slow
def test_several_seeds_have_a_mean_and_a_spread(dcdc, repeat, tmp_path):
    code, out, err = dcdc(*repeat, "--seeds", "2", "--first-seed", "5", "--quiet", UNDRAWN)
    assert (code, err) == (0, "")
    assert "5, 6" in out
    assert "±" in out
    assert len(runs_of(tmp_path)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mian",), "unknown table 'mian'; did you mean 'main'?"),
        (("main", "--dataset", "cifr10"), "unknown data set 'cifr10'; did you mean 'cifar10'?"),
        (("repeat", "--dataset", "stl10"), "table repeat has no stl10: give --dataset cifar100-20"),
        (("repeat",), "cifar100-20 is not here yet: dcdc data get cifar100-20"),
        (("repeat",), "(nor is tiny-imagenet)"),
        (("repeat", "--data", "cifar100-20=nowhere.npz"), "'nowhere.npz' does not exist"),
        (("repeat", "--data", "cifar100-20:nowhere"), "nowhere, which is no folder"),
        (("repeat", "--data", "stl10=x"), "does not say where a data set of table repeat lies"),
        (("repeat", "--data", "x.npz"), "Write NAME=SOURCE"),
        (("repeat", "--seeds", "0"), "--seeds is 0: give at least 1"),
        (("repeat", "--minutes", "0"), "--minutes is 0.0: give a number above 0"),
        (("repeat", "--epochs", "0"), "dcdc: --epochs 0 must be at least 1"),
        (("repeat", "--device", "gpu"), "not one of auto, cpu, cuda, mps"),
        (("repeat", "--set", "train.seed=1"), "use --seeds and --first-seed"),
        (("repeat", "--set", "epochs=1"), "use --epochs"),
        (("repeat", "--set", "heads.n_repeats=2"), "what they differ in"),
        (("repeat", "--set", "train.epoch=2"), "did you mean 'heads.epochs'?"),
        (("repeat", "--set", "train.threads"), "has no value"),
        (("repeat", "--set", "heads.batch_size=1"), "--set heads.batch_size=1 must be at least 2"),
        (("repeat", "--set", "n_clusters=1"), "--set n_clusters=1 must be at least 2"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(dcdc, tmp_path, arguments, message):
    code, out, err = dcdc("reproduce", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("dcdc: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_data_that_is_not_at_hand_names_what_is(dcdc, colour_file):
    code, _, err = dcdc("reproduce", "repeat", "--data", f"tiny-imagenet={colour_file}")
    assert code == 2
    assert err.rstrip().endswith("or run what is here: --dataset tiny-imagenet")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_a_device_that_is_not_here_is_refused_before_any_run(dcdc, repeat, tmp_path):
    code, out, err = dcdc(*repeat, "--device", "cuda")
    assert (code, out) == (2, "")
    assert "device 'cuda' is not available here" in err
    assert list(tmp_path.iterdir()) == []


def test_every_table_is_listed_without_any_data(dcdc):
    for name in ("main", "losses", "over-clustering", "repeat", "batch-size"):
        code, out, err = dcdc("reproduce", name, "--list")
        assert (code, err) == (0, "")
        assert "dcdc fit cifar100-20 --preset cifar100-20-paper --seed 0 --run " in out


def test_what_is_done_is_shown_without_data_and_nothing_is_written(dcdc, tmp_path):
    kept = Path(__file__).parents[2] / "docs/runs"
    shutil.copytree(kept, tmp_path / "kept")
    before = sorted((tmp_path / "kept").rglob("*"))
    code, out, err = dcdc("reproduce", "main", "--show", "--out", "kept", "--dataset", "cifar10")
    assert (code, err) == (0, "")
    shown = [line for line in out.splitlines() if line.startswith("CIFAR-10 ")]
    assert ["the paper's recipe  0      200 " in line for line in shown] == [True, False]
    assert ["our recipe          0      466 " in line for line in shown] == [False, True]
    assert sorted((tmp_path / "kept").rglob("*")) == before
