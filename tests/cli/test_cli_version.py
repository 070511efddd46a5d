import platform
import re
import subprocess
import sys
from importlib.metadata import version

import pytest


def test_says_which_dcdc_torch_and_python_these_are(dcdc):
    code, out, err = dcdc("--version")
    assert (code, err) == (0, "")
    own, torch, python = out.rstrip("\n").split(", ")
    assert re.fullmatch(rf"dcdc {re.escape(version('dcdc'))}( \([0-9a-f]{{7,}}(-dirty)?\))?", own)
    assert (torch, python) == (f"torch {version('torch')}", f"Python {platform.python_version()}")


@pytest.mark.parametrize(
    ("commit", "shown"), [("abc1234", "dcdc 1.2 (abc1234), "), (None, "dcdc 1.2, ")]
)
def test_outside_a_clone_there_is_no_commit_to_tell(dcdc, monkeypatch, commit, shown):
    monkeypatch.setattr("dcdc.cli.before_verbs.own_version", lambda: "1.2")
    monkeypatch.setattr("dcdc.cli.before_verbs.own_commit", lambda: commit)
    assert dcdc("--version")[1].startswith(shown)


def test_takes_no_second_of_imports():
    command = [sys.executable, "-X", "importtime", "-m", "dcdc", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "dcdc.cli.before_verbs" in imported
    assert not {"torch", "numpy", "sklearn", "matplotlib"} & imported
