"""The examples run as they are, and reach what they promise."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dcdc.config import with_values
from dcdc.data import load_images
from dcdc.prepare.presets import PRESETS

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_digits_example_runs(monkeypatch, capsys):
    short = with_values(PRESETS["digits"], {"heads.epochs": 1, "heads.batch_size": 300})
    monkeypatch.setitem(PRESETS, "digits", short)
    script = (EXAMPLES / "digits.py").read_text()
    exec(compile(script, "digits.py", "exec"), {"__name__": "__main__"})
    assert re.fullmatch(r"ACC 0\.\d{3}\n", capsys.readouterr().out)


@pytest.mark.slow
def test_the_digits_example_gets_nearly_all_right():
    command = [sys.executable, str(EXAMPLES / "digits.py")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(said.split()[1]) >= 0.95


def test_drawings_are_files_of_every_kind_and_the_same_for_a_seed(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        asked = ["drawings.py", str(tmp_path / folder), "--number", "60", "--in-folders"]
        monkeypatch.setattr(sys, "argv", asked)
        runpy.run_path(str(EXAMPLES / "drawings.py"), run_name="__main__")
    files = sorted((tmp_path / "one").rglob("*.jpg"))
    assert len(files) == 60
    assert {file.parent.name for file in files} >= {"boat", "fish", "house", "umbrella"}
    for file in files:
        twin = tmp_path / "two" / file.relative_to(tmp_path / "one")
        assert file.read_bytes() == twin.read_bytes()
        assert Image.open(file).size == (160, 160)


def test_the_picture_has_a_row_for_each_cluster_with_its_own_images(tmp_path):
    """Clusters here are the true digits; every tile of a row is then one of that digit's."""
    pictures = runpy.run_path(str(EXAMPLES / "pictures.py"))
    tile, gap = pictures["TILE"], pictures["GAP"]
    digits = load_images("digits")
    confidence = np.random.default_rng(0).random(digits.n_images)
    table = {"cluster": digits.targets, "confidence": confidence}
    pq.write_table(pa.table(table), tmp_path / "assignments.parquet")

    drawn = np.asarray(pictures["before_and_after"](tmp_path, "digits").convert("L"))
    left = drawn.shape[1] - pictures["CLUSTER_COLUMNS"] * (tile + gap) + gap
    side = tile // 8  # pixels of the picture to one of the digit
    for digit in range(10):
        of_digit = np.asarray(digits.images)[digits.targets == digit, ..., 0]
        for column in range(pictures["CLUSTER_COLUMNS"]):
            x, y = left + column * (tile + gap), digit * (tile + gap)
            shown = drawn[y + side // 2 : y + tile : side, x + side // 2 : x + tile : side]
            assert (of_digit == shown).all(axis=(1, 2)).any()
