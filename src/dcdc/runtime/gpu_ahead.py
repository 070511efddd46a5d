"""The GPU made ready in threads, while modules are imported and images are read.

Its driver, context and cuDNN, and Triton's digest of itself, are two seconds of libraries that let
other threads of Python go on. Nothing here draws a random number or keeps memory, and what fails
here is met again, and told, by whoever needs it. Threads that are no daemons: a command that ends
at once ends in order.
"""

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

DRIVER = Path("/dev/nvidiactl")
"""Whose presence says that there may be a GPU, without asking a library that takes long."""


def ready_driver_ahead() -> None:
    """Before torch is imported, and before anybody knows which device it will be: no GPU is
    touched yet."""
    if DRIVER.exists():
        _begin(_ready_driver)
        _begin(_ready_triton)


def ready_gpu_ahead(device: str) -> None:
    """Once it is known, by the name that somebody asked for."""
    if device in ("auto", "cuda") and DRIVER.exists():
        _begin(_ready_convolutions)


def _begin(ready: Callable[[], object]) -> None:
    def quietly() -> None:
        with suppress(Exception):
            ready()

    threading.Thread(target=quietly, name="dcdc-gpu-ahead").start()


def _ready_driver() -> None:
    ctypes.CDLL("libcuda.so.1").cuInit(0)


def _ready_triton() -> None:
    """Its digest of its own files is part of every kernel's name, and takes a third of a second."""
    from triton.runtime.cache import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        triton_key,
    )

    triton_key()


def _ready_convolutions() -> None:
    """A first one makes the context and loads cuDNN."""
    import torch
    from torch.nn import functional as F

    if torch.cuda.is_available():
        images = torch.zeros((2, 8, 8, 8), dtype=torch.bfloat16, device="cuda")
        images = images.to(memory_format=torch.channels_last)
        F.conv2d(images, images.new_zeros((8, 8, 3, 3)), padding=1)
