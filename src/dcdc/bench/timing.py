"""The time of a call: the median over blocks of calls, with its n and its spread."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

_BLOCKS = 7
_FEWEST_BLOCKS = 2  # of calls that are long for a CPU
_WARM_UP_SHARE = 1 / 6  # of the seconds
_CUDA_WARM_UP_CALLS = 12  # the first ones may compile or capture


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
