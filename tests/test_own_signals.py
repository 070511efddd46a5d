import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TESTS = """
import os, signal, subprocess, sys, time
import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AS_STARTED = [signal.getsignal(number) for number in NUMBERS], signal.pthread_sigmask(0, ())


def test_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_child(number):
    waiting = "import time; print(flush=True); time.sleep(600)"
    command = [sys.executable, "-S", "-c", waiting]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(number)
        try:
            assert process.wait(10) == -number
        finally:
            process.kill()


@pytest.fixture(scope="module", autouse=True)
def afterwards():
    yield
    assert ([signal.getsignal(number) for number in NUMBERS], signal.pthread_sigmask(0, ())) == \
        AS_STARTED
"""


def ignore() -> None:
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def block() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)


@pytest.mark.parametrize("parent", [ignore, block])
def test_signals_come_through_whatever_the_parent_does_with_them(tmp_path, parent):
    file = tmp_path / "test_signals.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "own_signals", "-p", "no:cacheprovider", file],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=parent,
        timeout=120,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
