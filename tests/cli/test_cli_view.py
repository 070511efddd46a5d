"""`dcdc view`: one line for what cannot be looked at, and a server that ends with its process."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from dcdc.config import RunConfig, to_mapping
from dcdc.run_folder import RunFolder


def test_a_run_that_has_not_finished_is_told_in_a_line(dcdc, tmp_path):
    RunFolder.create(tmp_path / "run").write_config(to_mapping(RunConfig(n_clusters=3)))
    code, out, err = dcdc("view", tmp_path / "run", "--no-browser")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "has no assignments yet" in err
    assert "--resume" in err


def test_what_is_no_run_folder(dcdc, tmp_path):
    code, _, err = dcdc("view", tmp_path, "--no-browser")
    assert code == 2
    assert "is not a run folder" in err


def test_ctrl_c_ends_it_while_the_browser_is_still_opening(dcdc, finished, monkeypatch):
    def opening(address: str) -> None:
        assert address.startswith("http://127.0.0.1:")
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", opening)
    code, out, err = dcdc("view", finished)
    assert code == 0
    assert out.startswith("view: http://")
    assert err == "only this machine can open it; Ctrl-C ends it\n"


@pytest.mark.slow  # a process of its own
def test_it_serves_until_ctrl_c(finished):
    process = subprocess.Popen(
        [sys.executable, "-m", "dcdc", "view", str(finished), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        address = process.stdout.readline().removeprefix("view: ").strip()
        with urllib.request.urlopen(address) as answer:
            assert b"<title>" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0])
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in err
