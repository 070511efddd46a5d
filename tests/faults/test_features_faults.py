"""Kills and signals while features are computed, and while heads train on them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_faults import answer, finish, go_on, history, wait_for

from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from dcdc.run_folder import RunFolder
from feature_runs import FROZEN, QUICK, some_vectors

needs_weights = pytest.mark.skipif(not is_available(), reason="EfficientNet-Lite0 is missing")
SLOW_STEPS = """
import sys, time
import dcdc.engine.step as module
plain = module.EagerStep.__call__
def slow(self, *given):
    time.sleep(0.02)
    return plain(self, *given)
module.EagerStep.__call__ = slow
from dcdc.cli import main
sys.argv[0] = "dcdc"
main()
"""
SMALL_BLOCKS = """
import sys, time
import dcdc.prepare.stored_features as module
module._BLOCK = 4
plain = module.raw_features
def slow(*given):
    time.sleep(0.2)
    return plain(*given)
module.raw_features = slow
from dcdc.cli import main
sys.argv[0] = "dcdc"
main()
"""


def command(source: Path, run: Path, program: str | None = None, **values) -> list[str]:
    how = ["-m", "dcdc"] if program is None else ["-c", program]
    settings = QUICK | {"heads.epochs": 20, "train.checkpoint_every": 3} | values
    flags = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    return [sys.executable, *how, "fit", str(source), "--run", str(run), "--no-report", *flags]


def started(arguments: list[str], **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """With another copy of each row beside it."""
    rows, targets = some_vectors(40)
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    np.savez(path, vectors=rows, targets=targets, copies=some_vectors(40, seed=1)[0])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vectors", pytest.param("frozen", marks=needs_weights)])
def test_a_run_that_was_killed_ends_bit_for_bit_as_an_undisturbed_one(
    kind, vectors, photo_folder, tmp_path
):
    source, values = (vectors, {}) if kind == "vectors" else (photo_folder, FROZEN)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = finish(command(source, whole, **values))
    assert done.returncode == 0, done.stderr
    process = started(command(source, killed, SLOW_STEPS, **values))
    lines = killed / "history.jsonl"
    wait_for(lambda: lines.exists() and lines.read_text().count("\n") >= 5, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert not (killed / "metrics.json").exists()
    resumed = go_on(killed)
    assert resumed.returncode == 0, resumed.stderr
    assert answer(killed) == answer(whole)
    assert history(killed) == history(whole)
    folders = [RunFolder.open(run) for run in (killed, whole)]
    weights, wanted = (folder.read_model(folder.read_config()) for folder in folders)
    assert all(bool((weights[name] == tensor).all()) for name, tensor in wanted.items())


@needs_weights
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_features_are_computed_says_how_to_go_on(
    number, code, photo_folder, tmp_path
):
    run, cache = tmp_path / "stopped", tmp_path / "cache"
    process = started(command(photo_folder, run, SMALL_BLOCKS, **FROZEN), DCDC_DATA=str(cache))

    def n_kept() -> int:
        found = list(cache.glob("decoded/features-*/journal"))
        return found[0].read_text().count("\n") if found else 0

    wait_for(lambda: n_kept() >= 3, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    last = err.strip().splitlines()[-1]
    assert f"stopped by {number.name} while the backbone's features were computed" in last
    assert f"go on with: dcdc fit --run {run} --resume" in last
    rows = next(cache.glob("decoded/features-*/rows"))
    before = rows.read_bytes()
    assert 0 < len(before) < 24 * 1280 * 4
    flags = ["--run", str(run), "--resume", "--no-report"]
    resumed = finish(
        [sys.executable, "-m", "dcdc", "fit", *flags], env=os.environ | {"DCDC_DATA": str(cache)}
    )
    assert resumed.returncode == 0, resumed.stderr
    assert rows.read_bytes()[: len(before)] == before
    assert rows.stat().st_size == 24 * 1280 * 4
    assert json.loads((run / "metrics.json").read_text())["epochs"] == 20
