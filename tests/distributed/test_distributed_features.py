"""Two processes on feature vectors, and over a frozen backbone: the answers of one."""

import csv
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from peers import finish, start

from feature_runs import FROZEN, QUICK, some_vectors

pytestmark = pytest.mark.slow


def flags(**values) -> list[str]:
    # short steps: Adam makes a whole one of a gradient's last digit
    settings = QUICK | {"heads.learning_rate": 1e-5} | values
    return [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]


def test_vectors_with_rows_left_out_are_answered_in_order(vector_run, tmp_path):
    vectors, _ = some_vectors(5_000, seed=4)
    vectors[[3, 4_100]] = np.nan
    np.save(tmp_path / "v.npy", vectors)
    command = ["-m", "dcdc", "predict", str(vector_run), str(tmp_path / "v.npy"), "--device", "cpu"]
    command += ["--on-bad", "skip"]
    alone = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    (out, err), (others_out, _) = finish(start(command, 2))
    expected, found = (list(csv.DictReader(text.splitlines())) for text in (alone.stdout, out))
    assert len(found) == 4_998
    for key in ("name", "cluster"):
        assert [row[key] for row in found] == [row[key] for row in expected]
    assert "skipped image-4100" in err
    assert not others_out


def test_over_a_frozen_backbone_features_are_computed_once(frozen_run_once, photo_folder, tmp_path):
    del frozen_run_once  # skips where the weights are missing
    answers = []
    for size in (1, 2):
        run, cache = tmp_path / f"run-{size}", tmp_path / f"cache-{size}"
        command = ["-m", "dcdc", "fit", str(photo_folder), "--run", str(run), "--no-report"]
        finish(start([*command, *flags(**FROZEN)], size, DCDC_DATA=str(cache)))
        assert len(list(cache.glob("decoded/features-*/rows"))) == 1
        answers.append(pq.read_table(run / "assignments.parquet").to_pydict())
    alone, together = answers
    assert together["cluster"] == alone["cluster"]
    assert np.allclose(together["confidence"], alone["confidence"], atol=1e-4)
