"""The examples run as they are, and reach what they promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dcdc.config import with_values
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
