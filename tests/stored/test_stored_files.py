"""The declared schemas against what earlier versions left, and against each other."""

import json
from pathlib import Path

import pytest

from dcdc.stored.files import CONFIG, HISTORY, METRICS, STORED_FILES

ROOT = Path(__file__).parents[2]
OLD_RUNS = [
    ROOT / "tests/kept_run_0_1_0",
    *sorted(path.parent for path in ROOT.glob("docs/runs/*/*/metrics.json")),
]


def unsealed(text: str) -> dict:
    """What it holds; files of 0.1.0 have no checksum."""
    return {key: value for key, value in json.loads(text).items() if key != "checksum"}


@pytest.mark.parametrize("run", OLD_RUNS, ids=lambda run: f"{run.parent.name}/{run.name}")
def test_files_of_earlier_versions_fit(run):
    assert CONFIG.read(run / "config.json")
    assert METRICS.read(run / "metrics.json") == unsealed((run / "metrics.json").read_text())
    lines = (run / "history.jsonl").read_text().splitlines()
    assert HISTORY.lines(run / "history.jsonl") == [unsealed(line) for line in lines]


def test_every_file_says_what_to_do_with_a_damaged_one(tmp_path):
    for name, file in STORED_FILES.items():
        assert file.name == name
        told = str(file.damaged(tmp_path / "x", ValueError("torn\nin two")))
        assert told.startswith(f"{tmp_path / 'x'} is damaged (torn in two): ")
