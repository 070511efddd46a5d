"""The most memory that this process, or the GPU for it, has held so far."""

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory_mb() -> float:
    """Of the process since it began; Linux's own peak, since getrusage counts what stood before
    exec, a large parent's memory among it."""
    if _STATUS.exists():
        peak = _STATUS.read_text(encoding="ascii", errors="replace").partition("VmHWM:")[2]
        return int(peak.split()[0]) / 1024
    import resource

    per_mb = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mb


def peak_gpu_memory_mb() -> float | None:
    """Of torch's tensors on a CUDA device; None where none was used."""
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.cuda.max_memory_allocated() / 1024**2 or None
