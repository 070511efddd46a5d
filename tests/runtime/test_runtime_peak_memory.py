import subprocess
import sys

import pytest

PROGRAM = (
    "from pathlib import Path; import dcdc.runtime.peak_memory as here; "
    "here._STATUS = Path({status!r}); held = bytearray(b'x') * {held}; del held; "
    "print(here.peak_memory_mb())"
)


def peak(held: int, status: str) -> float:
    program = PROGRAM.format(status=status, held=held)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return float(done.stdout)


@pytest.mark.parametrize("status", ["/proc/self/status", "/nowhere"], ids=["proc", "getrusage"])
def test_the_peak_is_what_was_held_at_most_though_it_was_given_back(status):
    held = 1_500_000_000  # above what this process holds, which getrusage may count
    assert peak(held, status) > held / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="getrusage alone, elsewhere")
def test_what_the_parent_holds_does_not_count():
    ballast = bytearray(b"x") * 300_000_000
    assert peak(1, "/proc/self/status") < len(ballast) / 2**20
