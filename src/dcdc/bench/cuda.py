"""What CUDA alone has: graphs, and a count of its memory."""

import gc
from collections.abc import Callable

import torch

from dcdc.engine.captured_step import CudaCapture


class CapturedCall:
    """A call as a CUDA graph, so that launching its kernels takes no time."""

    def __init__(
        self,
        call: Callable[[], object],
        device: torch.device,
        generator: torch.Generator | None = None,
    ) -> None:
        if device.type != "cuda":
            raise RuntimeError(f"a graph needs CUDA, not {device.type}")
        self._call = call  # keeps alive what the graph reads
        self._graph = CudaCapture()(call, generator)

    def __call__(self) -> None:
        self._graph.replay()


def start_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.empty(1, device=device)  # there is nothing to reset before the first
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """Allocated at once since `start_peak`; None without CUDA."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None


def release_memory(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
