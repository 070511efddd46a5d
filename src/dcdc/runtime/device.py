"""Where a run computes, and how its numbers are held there."""

import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

from dcdc.errors import InputError
from dcdc.printable import counted
from dcdc.runtime.kernels_ahead import launching


def _available() -> dict[str, bool]:
    return {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }


def is_available(name: str) -> bool:
    return name == "auto" or _available().get(name, False)


def pick_device(name: str) -> torch.device:
    """`auto` takes CUDA, then Apple's MPS, then the CPU."""
    available = _available()
    if name == "auto":
        name = next(kind for kind, there in available.items() if there)
    if not available.get(name, False):
        there = ", ".join(kind for kind, usable in available.items() if usable)
        raise InputError(
            f"device {name!r} is not available here", remedy=f"use {{device=auto}} or {there}"
        )
    return torch.device(name)


def take_device(name: str, local_rank: int) -> torch.device:
    """The device of one of several processes on this host: each GPU serves one."""
    device = pick_device(name)
    if device.type == "mps":
        raise InputError(
            "several processes cannot share MPS", remedy=("use {device=cpu}", "one process")
        )
    if device.type == "cuda":
        n_gpus = torch.cuda.device_count()
        if local_rank >= n_gpus:
            raise InputError(
                f"process {local_rank} of this host has no GPU, there are {n_gpus}",
                remedy=(f"start {n_gpus} processes on it", "use {device=cpu}"),
            )
        torch.cuda.set_device(local_rank)  # what `cuda` means in this process from now on
    return device


def describe_device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = counted(torch.get_num_threads(), "thread")
    return f"{device.type} ({platform.machine()}, {threads})"


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Torch's CPU threads inside the block; 0 leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def usual_precision(device: torch.device) -> Literal["bfloat16", "float32"]:
    """Of products, where nobody says."""
    return "bfloat16" if device.type == "cuda" else "float32"


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """bfloat16 products under float32 weights, or nothing."""
    if precision == "bfloat16":
        if device.type != "cuda":
            # Seen with torch 2.13: an illegal instruction on a CPU without the right units.
            raise InputError(
                f"precision bfloat16 is for CUDA, not for {device.type}",
                remedy=("use {device=cuda}", "leave {train.precision} to auto"),
            )
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


ALGORITHMS_TRIED = 25
"""For each convolution. torch tries 10: a step of `cifar10` then takes 1.4 % longer on an H200."""


def choose_fastest_convolutions(device: torch.device) -> None:
    """Tries cuDNN's algorithms on the shapes it meets, of which a training has few."""
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = ALGORITHMS_TRIED


def can_build(name: str, launch: Callable[[], object]) -> bool:
    """One small launch tells: Triton needs a C compiler too, which a slim image may lack."""
    try:
        with launching():
            launch()
    except Exception as fault:  # whatever Triton's compiler and linker raise
        reason = " ".join(str(fault).split())
        message = f"{name} cannot be built ({reason}); a slower one does its work"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return False
    return True
