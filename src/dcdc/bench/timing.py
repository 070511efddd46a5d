"""The time of a call: the median over blocks of calls, with its n and its spread; a row for each.

What CUDA alone has is here too: graphs, and a count of its memory.
"""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import torch

from dcdc.engine.captured_step import CudaCapture

_BLOCKS = 7
_FEWEST_BLOCKS = 2  # of calls that are long for a CPU
_WARM_UP_SHARE = 1 / 6  # of the seconds
_CUDA_WARM_UP_CALLS = 12  # the first ones may compile or capture
_KEYS = (
    *("part", "preset", "name", "not_possible"),
    *("ms", "fastest_ms", "slowest_ms", "spread", "n_blocks", "calls_per_block"),
    *("warm_up_seconds", "images", "copies", "images_per_second", "copies_per_second"),
    *("peak_gpu_bytes", "details"),
)


@dataclass(frozen=True)
class Timing:
    """Milliseconds a call: the median block, the fastest and the slowest."""

    ms: float
    fastest_ms: float
    slowest_ms: float
    n_blocks: int
    calls_per_block: int
    warm_up_seconds: float

    @property
    def spread(self) -> float:
        return self.slowest_ms / self.fastest_ms

    def scaled(self, factor: float) -> "Timing":
        """Of `factor` times as much work."""
        return replace(
            self,
            ms=self.ms * factor,
            fastest_ms=self.fastest_ms * factor,
            slowest_ms=self.slowest_ms * factor,
        )

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"spread": self.spread}


@dataclass(frozen=True)
class Measured:
    timing: Timing
    images: int = 0
    """Images a call works on; 0: it works on none."""
    copies: int = 0
    """Copies of images that a call makes or trains on, originals among them."""
    peak_gpu_bytes: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def per_second(self, count: int) -> float | None:
        return 1000 * count / self.timing.ms if count else None


@dataclass(frozen=True)
class Trial:
    """A measurement to come; it may fail without stopping others."""

    name: str
    measure: Callable[[], Measured]


@dataclass(frozen=True)
class Row:
    part: str
    preset: str | None
    name: str
    measured: Measured | None = None
    not_possible: str | None = None
    """Why, where nothing was measured."""

    def to_dict(self) -> dict[str, Any]:
        """The same keys for every row; None where there is nothing to say."""
        found: dict[str, Any] = dict.fromkeys(_KEYS)
        found |= {"part": self.part, "preset": self.preset, "name": self.name}
        found["not_possible"] = self.not_possible
        measured = self.measured
        if measured is not None:
            found |= measured.timing.to_dict() | {
                "images": measured.images or None,
                "copies": measured.copies or None,
                "images_per_second": measured.per_second(measured.images),
                "copies_per_second": measured.per_second(measured.copies),
                "peak_gpu_bytes": measured.peak_gpu_bytes,
                "details": measured.details,
            }
        return found


def usual_seconds(device: torch.device) -> float:
    return 1.0 if device.type == "cpu" else 3.0


def time_calls(
    call: Callable[[], object], device: torch.device, seconds: float, burst: int = 1
) -> Timing:
    """Warms up, then times blocks of calls for about `seconds`.

    Where calls come in bursts, as batches of several workers do, no block is shorter than one.
    On a CPU a first call longer than `seconds` is the first block, where a warm-up would cost as
    much as the measuring.
    """
    first = _block_on_host(call, device, 1)
    if first > seconds and device.type == "cpu":
        others = [_block_on_host(call, device, 1) for _ in range(_FEWEST_BLOCKS - 1)]
        return _summary([first, *others], 1, 0.0)
    settling = _block_on_host(call, device, _CUDA_WARM_UP_CALLS if device.type == "cuda" else 0)
    n_tried, trying = _calls_within(call, device, _WARM_UP_SHARE * seconds)
    each = trying / n_tried

    n_blocks = _BLOCKS
    if device.type != "cuda":
        n_blocks = min(max(int(seconds / each), _FEWEST_BLOCKS), _BLOCKS)
    n_calls = max(burst, round(seconds / n_blocks / each))
    if device.type == "cuda":
        blocks = _blocks_on_cuda(call, n_blocks, n_calls)
    else:
        blocks = [_block_on_host(call, device, n_calls) for _ in range(n_blocks)]
    return _summary(blocks, n_calls, first + settling + trying)


def _summary(blocks: Sequence[float], n_calls: int, warm_up_seconds: float) -> Timing:
    each = [1000 * block / n_calls for block in blocks]
    return Timing(
        statistics.median(each), min(each), max(each), len(each), n_calls, warm_up_seconds
    )


def _block_on_host(call: Callable[[], object], device: torch.device, n_calls: int) -> float:
    started = time.perf_counter()
    for _ in range(n_calls):
        call()
    _wait_for(device)
    return time.perf_counter() - started


def _calls_within(
    call: Callable[[], object], device: torch.device, seconds: float
) -> tuple[int, float]:
    """How many, one at least, and the seconds they took; a loader's come in bursts."""
    started = time.perf_counter()
    n_calls = 0
    while n_calls == 0 or time.perf_counter() - started < seconds:
        call()
        n_calls += 1
    _wait_for(device)
    return n_calls, time.perf_counter() - started


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _blocks_on_cuda(call: Callable[[], object], n_blocks: int, n_calls: int) -> list[float]:
    """Seconds between events on the device, where no block waits for the host to look."""
    torch.cuda.synchronize()
    marks = [
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(n_blocks + 1)
    ]
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(n_calls):
            call()
        mark.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / 1000 for before, after in pairwise(marks)]


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
