"""What lies in a folder is not lost: not by --overwrite, nor by a second process, nor by a kill."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pytest

from dcdc.cli import main
from dcdc.export import formats
from dcdc.runtime.folder_lock import LOCK, locked_folder


def contents(folder) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_a_thesis_is_not_overwritten(dcdc, tiny_file, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "config.json").write_text("{}")
    (tmp_path / "p" / "thesis.txt").write_text("x")
    code, _, err = dcdc("fit", tiny_file, "--clusters", 3, "--run", "p", "--overwrite")
    assert (code, err.count("\n")) == (2, 1)
    assert "p is not a run folder, so it is not overwritten: choose another by --run" in err
    assert contents(tmp_path / "p") == {"config.json": b"{}", "thesis.txt": b"x"}


def test_nor_are_source_images_inside_a_run(dcdc, finished, tiny_file):
    source = shutil.copy(tiny_file, finished / "tiny.npz")
    before = contents(finished)
    code, _, err = dcdc("fit", source, "--clusters", 3, "--run", finished, "--overwrite")
    assert (code, err.count("\n")) == (2, 1)
    assert "holds tiny.npz, which no run wrote, so it is not overwritten: move it away" in err
    assert contents(finished) == before


@pytest.mark.parametrize("flags", [("--overwrite",), ("--overwrite", "--tensorboard")])
def test_a_run_is_overwritten_with_all_that_it_left(dcdc, finished, tiny_file, tiny_flags, flags):
    pytest.importorskip("tensorboard")
    (finished / "names.json").write_text(json.dumps({"format": 1, "clusters": {"0": "stripes"}}))
    flags = ["--run", finished, "--no-report", "--quiet", *tiny_flags, *flags]
    assert dcdc("fit", tiny_file, *flags, "--seed", 5)[0] == 0
    assert not (finished / "names.json").exists()
    assert not (finished / "figures").exists()
    assert json.loads((finished / "metrics.json").read_text())["seed"] == 5
    assert dcdc("fit", tiny_file, *flags, "--seed", 6)[0] == 0  # events and all


@pytest.mark.parametrize(
    "bad",
    [
        ("nowhere.npz",),
        ("--set", "network.mean=[0.5]", "--set", "network.std=[0]"),
        ("--clusters", "1"),
        ("--size", "3"),
        ("--device", "cuda:99"),
    ],
)
def test_a_start_that_is_refused_leaves_no_folder_and_the_older_run(
    dcdc, finished, tiny_file, tmp_path, bad
):
    data = () if bad[0].endswith("npz") else (tiny_file, "--clusters", 3)
    before = contents(finished)
    for run, flags in ((finished, ["--overwrite"]), (tmp_path / "new" / "run", [])):
        assert dcdc("fit", *data, *bad, "--run", run, "--quiet", *flags)[0] == 2
    assert contents(finished) == before
    assert not (tmp_path / "new").exists()


def test_a_run_that_goes_on_knows_its_images_and_settings(dcdc, tiny_file, tiny_flags, tmp_path):
    source = tmp_path / "images.npz"
    shutil.copy(tiny_file, source)
    flags = ["--run", "run", "--no-report", "--quiet"]
    assert dcdc("fit", source, *tiny_flags, *flags)[0] == 0
    before = contents(tmp_path / "run")
    with np.load(tiny_file) as arrays:
        np.savez(source, images=arrays["images"][::-1], targets=arrays["targets"][::-1])
    code, _, err = dcdc("fit", "--resume", *flags)
    assert (code, err.count("\n")) == (2, 1)
    told = "cannot resume run: the source has other pixels and classes than the run was trained on"
    assert f"{told}: restore them, or start a new run by --run" in err
    shutil.copy(tiny_file, source)
    config = json.loads(before["config.json"])
    config["train"]["seed"] = 3
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    code, _, err = dcdc("fit", "--resume", *flags)
    assert (code, err.count("\n")) == (2, 1)
    assert "settings were changed since its checkpoint (train.seed is 3, was 0)" in err
    (tmp_path / "run" / "config.json").write_bytes(before["config.json"])
    assert dcdc("fit", "--resume", *flags)[0] == 0


@pytest.mark.parametrize(
    "verb", [("compare", "--methods", "k-means"), ("reproduce", "main", "--dataset", "cifar10")]
)
def test_tables_have_one_writer(dcdc, forked, tiny_file, tmp_path, verb):
    def hold() -> None:
        with locked_folder(tmp_path / "out"):
            time.sleep(600)

    holder = forked(hold)
    while not (tmp_path / "out" / LOCK).exists():
        time.sleep(0.002)
    name, *flags = verb
    data = [tiny_file] if name == "compare" else ["--data", f"cifar10={tiny_file}"]
    code, _, err = dcdc(name, *data, *flags, "--out", "out", "--quiet", "--device", "cpu")
    assert (code, err.count("\n")) == (2, 1)
    assert f"another process is working in out (process {holder.pid} on" in err
    assert err.endswith(": wait for it, or choose another --out\n")
    holder.kill()


@pytest.mark.parametrize(
    ("number", "left"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)]
)
def test_an_export_that_is_cut_short_leaves_nothing_for_ever(
    dcdc, forked, finished, tmp_path, monkeypatch, number, left
):
    there = tmp_path / "there"
    arguments = ["export", finished, "--format", "torch", "--out", there / "e.pt2"]

    def export() -> None:
        def stop(_):
            os.kill(os.getpid(), number)
            time.sleep(60)

        monkeypatch.setattr(formats, "open_torch", stop)
        monkeypatch.setattr("sys.argv", ["dcdc", *map(str, arguments)])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()

    process = forked(export)
    process.join(60)
    assert process.exitcode == {signal.SIGTERM: 143, signal.SIGINT: 130}.get(number, -number)
    assert len(list(there.iterdir())) == left
    assert dcdc(*arguments)[0] == 0
    assert [path.name for path in there.iterdir()] == ["e.pt2"]
