"""Bad input: one clear line on stderr, exit code 2, and nothing half-written left behind."""

import json

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def refused(dcdc):
    """Runs a command that must be refused; gives its one line."""

    def call(*arguments: object) -> str:
        code, out, err = dcdc(*arguments)
        assert code == 2, err
        assert out == ""
        errors = [line for line in err.splitlines() if line.startswith("dcdc: ")]
        assert len(errors) == 1, err
        assert "Traceback" not in err
        return errors[0]

    return call


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for index in range(20):
        pixels = random.integers(0, 256, (16, 16, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{index:02}.png")
    return folder


def nothing_left(tmp_path) -> bool:
    return not (tmp_path / "runs").exists()


def test_an_empty_folder(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no image in folder empty" in refused("fit", "empty", "--clusters", "3")
    assert nothing_left(tmp_path)


def test_a_folder_without_images(refused, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("hello")
    assert "no image in folder texts" in refused("fit", "texts", "--clusters", "3")


def test_a_corrupt_image_is_named_and_refused_or_skipped(dcdc, refused, images, tmp_path):
    good = (images / "07.png").read_bytes()
    (images / "07.png").write_bytes(good[: len(good) // 2])
    line = refused("fit", images, "--clusters", "3")
    assert "07.png" in line
    assert "--on-bad skip" in line
    assert nothing_left(tmp_path)
    code, _, err = dcdc(
        *("fit", images, "--clusters", "3", "--on-bad", "skip", "--epochs", "2", "--size", "8")
    )
    assert code == 0
    assert "skipped 07.png: " in err
    assert "07.png" in (tmp_path / "runs/photos/skipped.csv").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--clusters", "21"), "20 images cannot fill 21 clusters"),
        (("--clusters", "1"), "--clusters 1 must be at least 2"),
        (("--clusters", "3", "--batch-size", "21"), "batch of 21 is larger than the set of 20"),
        ((), "nothing says how many clusters to find: give --clusters auto where"),
        (("--clusters", "3", "--preset", "cifr10-paper"), "did you mean 'cifar10-paper'?"),
        (("--clusters", "3", "--set", "heads.epoch=1"), "did you mean 'heads.epochs'?"),
        (("--clusters", "3", "--set", "train.epochs=1"), "is called 'heads.epochs' now"),
        (
            ("--clusters", "3", "--set", "heads.temperature=-1"),
            "--set heads.temperature=-1.0 must be above 0",
        ),
        (
            ("--clusters", "3", "--set", "phases=heds"),
            "unknown phase 'heds'; did you mean 'heads'?",
        ),
        (("--clusters", "3", "--config", "none.toml"), "cannot read config none.toml"),
        (("--clusters", "3", "--device", "gpu"), "not one of auto, cpu, cuda, mps"),
        (("--clusters", "3", "--baseline", "kmeans"), "did you mean 'k-means'?"),
        (("--clusters", "3", "--on-bad", "ignore"), "not one of refuse, skip"),
        (("--clusters", "3", "--resume", "--overwrite"), "exclude each other"),
        (("--clusters", "3", "--set", "augment.hue=2"), "hue"),
    ],
)
def test_wrong_flags(refused, images, tmp_path, flags, message):
    assert message in refused("fit", images, *flags)
    assert nothing_left(tmp_path)


def test_a_source_that_is_not_there(refused):
    assert "did you mean 'digits'?" in refused("fit", "digit")
    assert "say what to cluster" in refused("fit", "--run", "x")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((20, 8, 8), np.nan), "NaN or infinite values, first in image 0"),
        (np.zeros(20), "has shape (20,)"),
        (np.zeros((20, 8, 8), complex), "has type complex128"),
        (np.full((20, 8, 8), 300), "values from 300 to 300"),
        (np.array([object()] * 20), "never loaded"),
    ],
)
def test_arrays_that_hold_no_images(refused, tmp_path, array, message):
    np.save(tmp_path / "images.npy", array)
    assert message in refused("fit", "images.npy", "--clusters", "3")
    assert nothing_left(tmp_path)


def test_a_run_folder_that_exists(refused, images, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("mine")
    line = refused("fit", images, "--clusters", "3", "--run", "run")
    assert "run folder run exists" in line
    assert "not a run folder" in refused(
        "fit", images, "--run", "run", "--overwrite", "--clusters", 3
    )
    assert (tmp_path / "run" / "file").read_text() == "mine"


def test_resume_of_what_is_no_run(refused):
    assert "nowhere is not a run folder" in refused("fit", "--run", "nowhere", "--resume")
    assert "say what to cluster" in refused("fit", "--resume")


@pytest.mark.usefixtures("finished")
def test_resume_with_a_changed_config_says_what_differs(refused):
    line = refused(
        "fit", "--run", "runs/tiny", "--resume", "--seed", "4", "--set", "heads.temperature=2"
    )
    assert "train.seed is 4, was 0" in line
    assert "heads.temperature is 2.0, was 0.5" in line


def test_predicting_with_a_damaged_or_unfinished_run(refused, finished, tiny_file):
    model = finished / "model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-100])
    assert "is damaged" in refused("predict", "runs/tiny", tiny_file)
    model.unlink()
    assert "has no model yet" in refused("predict", "runs/tiny", tiny_file)
    (finished / "config.json").write_text(json.dumps({"trian": {}})[:-1])
    assert "config.json" in refused("predict", "runs/tiny", tiny_file)


@pytest.mark.usefixtures("finished")
def test_predictions_never_overwrite_and_have_a_known_format(refused, tiny_file, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    assert "out.csv exists" in refused("predict", "runs/tiny", tiny_file, "--out", "out.csv")
    assert "must end in .csv, .parquet or .jsonl" in refused(
        "predict", "runs/tiny", tiny_file, "--out", "o.xls"
    )
    assert (tmp_path / "out.csv").read_text() == "mine"


def test_a_place_that_cannot_be_written(refused, images, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    line = refused("fit", images, "--clusters", "3", "--run", "file/run")
    assert "file/run" in line
