"""The verbs that several processes share, over a real folder of images."""

import csv
import shutil
import subprocess
import sys

import numpy as np
import pytest
from peers import finish, start
from PIL import Image
from trainings import N_IMAGES, images

pytestmark = pytest.mark.slow

FLAGS = [
    *("--epochs", "2", "--batch-size", "16", "--device", "cpu", "--no-report"),
    *("--clusters", "3"),
    *("--set", "network.over_clusters=6", "--set", "heads.n_repeats=1", "--set", "train.threads=1"),
    *("--set", "heads.over_clustering_first=0"),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    given = images()
    for number, (pixels, target) in enumerate(zip(given.images, given.targets, strict=True)):
        (folder / str(target)).mkdir(exist_ok=True)
        Image.fromarray(pixels[..., 0]).save(folder / str(target) / f"{number:02d}.png")
    return folder


@pytest.fixture(scope="module")
def fitted(photos, tmp_path_factory):
    """By two processes, with a cache of their own; what they said, and the cache."""
    place = tmp_path_factory.mktemp("fitted")
    command = ["-m", "dcdc", "fit", str(photos), "--run", str(place / "run"), *FLAGS]
    said = finish(start(command, 2, DCDC_DATA=str(place / "cache")))
    return place, said


def test_one_process_decodes_while_the_others_wait(fitted):
    place, ((_, err), (others_out, others_err)) = fitted
    assert f"decoding {N_IMAGES} images, once: 1 other process waits for it" in err
    assert len(list(place.glob("cache/decoded/*/rows"))) == 1
    assert not others_out
    assert "decoding" not in others_err


@pytest.mark.parametrize("size", [2, 3])
def test_predictions_are_those_of_one_process_in_order(fitted, photos, size):
    run = str(fitted[0] / "run")
    command = ["-m", "dcdc", "predict", run, str(photos), "--device", "cpu"]
    alone = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    (out, _), *others = finish(start(command, size))
    assert not any(text for text, _ in others)
    expected, found = (list(csv.DictReader(text.splitlines())) for text in (alone.stdout, out))
    assert len(found) == N_IMAGES
    for key in ("name", "cluster"):
        assert [row[key] for row in found] == [row[key] for row in expected]
    shares = [[float(row["confidence"]) for row in rows] for rows in (found, expected)]
    assert np.allclose(*shares, atol=2e-4)


def test_a_table_with_features_is_that_of_one_process(fitted, photos, tmp_path):
    """By turns of a few rows, an image that cannot be read among them."""
    scans = tmp_path / "scans"
    shutil.copytree(photos, scans)
    (scans / "0" / "00a.png").write_bytes(b"no image")
    small_turns = "import dcdc.prediction.answers as a; a._CHUNKS_A_TURN = 1; "
    small_turns += "import dcdc.engine.trained_model as t; t.CHUNK = 5; "
    script = small_turns + "from dcdc.cli import app; app()"
    tables, features = [], []
    for size in (1, 3):
        out, found = tmp_path / f"{size}.csv", tmp_path / f"{size}.npy"
        command = ["-c", script, "predict", str(fitted[0] / "run"), str(scans), "--device", "cpu"]
        command += ["--on-bad", "skip", "--out", str(out), "--features", str(found)]
        finish(start(command, size))
        tables.append(list(csv.DictReader(out.read_text().splitlines())))
        features.append(np.load(found))
        assert "00a.png" in (tmp_path / f"{size}.skipped.csv").read_text()
        assert not out.with_name(f"{out.name}.partial").exists()
    assert len(tables[0]) == len(features[0]) == N_IMAGES
    assert [row["name"] for row in tables[0]] == [row["name"] for row in tables[1]]
    assert [row["cluster"] for row in tables[0]] == [row["cluster"] for row in tables[1]]
    np.testing.assert_allclose(*features, rtol=1e-4, atol=1e-4)


def test_a_score_is_told_once(fitted, photos):
    run = str(fitted[0] / "run")
    (out, _), (others, _) = finish(start(["-m", "dcdc", "evaluate", run, str(photos)], 2))
    assert out.count("DCDC") == 1
    assert not others


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["report", "runs/x"], "dcdc report is work for one process: start it without torchrun"),
        (
            ["fit", "DATA", *FLAGS, "--batch-size", "2"],
            "a batch of 2 images cannot be shared by 3",
        ),
        (["fit", "DATA", "--set", "heads.epochs=0"], "--epochs 0 must be at least 1"),
    ],
)
def test_wrong_use_is_one_line_of_one_process(photos, tmp_path, arguments, wanted):
    named = [str(photos) if text == "DATA" else text for text in arguments]
    where = ["--run", str(tmp_path / "run")] if "fit" in arguments else []
    processes = start(["-m", "dcdc", *named, *where], 3)
    said = [process.communicate(timeout=120) for process in processes]
    lines = [line for _, err in said for line in err.splitlines() if line.startswith("dcdc: ")]
    assert processes[0].returncode == 2
    assert all(process.returncode for process in processes)
    assert wanted in lines[0]
    assert not (tmp_path / "run").exists()
    assert not any("Traceback" in err for _, err in said)
