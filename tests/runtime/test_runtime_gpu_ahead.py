"""No GPU is needed: whether one may be there is told by a file."""

import subprocess
import sys
import threading

import pytest

from dcdc.runtime import gpu_ahead
from dcdc.runtime.gpu_ahead import ready_driver_ahead, ready_gpu_ahead

BEFORE_THE_FIRST_STEP = """
import sys
from dcdc.cli import fit_training, progress, reading, recipe_lines
from dcdc.prepare import cluster_number, duration, prepare_run
from dcdc import run
late = {"scipy", "sklearn", "matplotlib", "pandas"}
print(*sorted(late & set(sys.modules)))
"""


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """Names of what was begun, where there may be a GPU."""
    found = []
    for name in ("_ready_driver", "_ready_triton", "_ready_convolutions"):
        monkeypatch.setattr(gpu_ahead, name, lambda name=name: found.append(name))
    driver = tmp_path / "driver"
    driver.touch()
    monkeypatch.setattr(gpu_ahead, "DRIVER", driver)
    return found


def wait():
    for thread in threading.enumerate():
        if thread.name == "dcdc-gpu-ahead":
            thread.join(timeout=60)
            assert not thread.is_alive()


def test_what_needs_no_device_begins_before_it_is_known(begun):
    ready_driver_ahead()
    wait()
    assert sorted(begun) == ["_ready_driver", "_ready_triton"]


@pytest.mark.parametrize(("device", "n_begun"), [("auto", 1), ("cuda", 1), ("cpu", 0), ("mps", 0)])
def test_a_gpu_is_touched_where_it_may_be_asked_for(begun, device, n_begun):
    ready_gpu_ahead(device)
    wait()
    assert begun == ["_ready_convolutions"] * n_begun


def test_nothing_begins_where_there_is_no_driver(begun, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_ahead, "DRIVER", tmp_path / "none")
    ready_driver_ahead()
    ready_gpu_ahead("cuda")
    wait()
    assert begun == []


def test_what_fails_there_is_left_to_who_needs_it(begun, monkeypatch, capsys):
    def fail():
        begun.append("failed")
        raise OSError("libcuda.so.1: no such file")

    monkeypatch.setattr(gpu_ahead, "_ready_driver", fail)
    ready_driver_ahead()
    wait()
    assert sorted(begun) == ["_ready_triton", "failed"]
    assert capsys.readouterr() == ("", "")


def test_libraries_that_take_long_to_import_wait_until_they_are_needed():
    command = [sys.executable, "-c", BEFORE_THE_FIRST_STEP]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""
