"""What runs here and on what: versions, the commit, cores, and the most memory held so far."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.errors import InputError

if TYPE_CHECKING:
    import torch

COMMIT_VARIABLE = "DCDC_COMMIT"
"""What says the commit where the code is no clone."""
_GIT_SECONDS = 5
_SPIN_COUNT = "GOMP_SPINCOUNT"
_STATUS = Path("/proc/self/status")
_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def own_version() -> str:
    return version_of("dcdc")


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def own_commit() -> str | None:
    """Short name of the commit, with `-dirty` for changes beside it; outside a clone what the
    environment says, or None."""
    here = Path(__file__)
    # An installed package may lie inside somebody else's repository: then it is not tracked.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return os.environ.get(COMMIT_VARIABLE) or None
    return _git(here.parent, "describe", "--always", "--dirty", "--exclude", "*")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def expanded(path: str | Path) -> Path:
    """With the home folder in the place of `~`, where that is known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        user = str(path).partition("/")[0]
        raise InputError(
            f"{user} in {path} stands for no home folder that is known here: write it out"
        ) from None


def bound_spinning() -> None:
    """Threads of OpenMP wait for each other by spinning, and beside a busy process they spin while
    the one they wait for has no core. Asked before torch is loaded; a person's own choice stays."""
    if not {_SPIN_COUNT, "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ[_SPIN_COUNT] = "10000"  # of 300,000: benchmarks/spinning.py


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory(device: "torch.device") -> int | None:
    """Bytes that a process may still take there: of the machine, within the limit of its group;
    None where nobody says."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    found = [each for each in (_free_of_machine(), _free_of_group()) if each is not None]
    return min(found, default=None)


def _free_of_machine() -> int | None:
    try:
        text = _MEMORY.read_text(encoding="ascii", errors="replace")
        return 1024 * int(text.partition("MemAvailable:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _free_of_group() -> int | None:
    """By Linux's control groups, as containers have them."""
    try:
        most, used = ((_GROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        return max(0, int(most) - int(used))
    except (OSError, ValueError):  # no such group, or "max"
        return None


def peak_memory_mb() -> float | None:
    """Of the process since it began; Linux's own peak, since getrusage counts what stood before
    exec, a large parent's memory among it. None on Windows."""
    if _STATUS.exists():
        peak = _STATUS.read_text(encoding="ascii", errors="replace").partition("VmHWM:")[2]
        return int(peak.split()[0]) / 1024
    try:
        import resource
    except ImportError:
        return None
    per_mb = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mb


def peak_gpu_memory_mb() -> float | None:
    """Of torch's tensors on a CUDA device; None where none was used."""
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.cuda.max_memory_allocated() / 1024**2 or None
