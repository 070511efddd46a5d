import time

import pytest

from dcdc.bench.timing import Timing, time_calls


class Calls:
    """Takes `seconds` each time; the first takes `first`."""

    def __init__(self, seconds: float, first: float | None = None) -> None:
        self.count = 0
        self.seconds, self.first = seconds, seconds if first is None else first

    def __call__(self) -> None:
        time.sleep(self.seconds if self.count else self.first)
        self.count += 1


def test_quick_calls_are_timed_in_blocks_for_about_the_seconds(cpu):
    call = Calls(0.002)
    started = time.perf_counter()
    timing = time_calls(call, cpu, 0.3)
    took = time.perf_counter() - started
    assert timing.n_blocks == 7
    assert timing.calls_per_block > 1
    assert call.count > timing.n_blocks * timing.calls_per_block  # warmed up before
    assert 2 <= timing.fastest_ms <= timing.ms <= timing.slowest_ms < 100
    assert timing.spread == timing.slowest_ms / timing.fastest_ms
    assert 0 < timing.warm_up_seconds < took < 3


def test_a_slow_first_call_is_warm_up_and_not_measured(cpu):
    timing = time_calls(Calls(0.002, first=0.15), cpu, 0.3)
    assert timing.warm_up_seconds >= 0.15
    assert timing.slowest_ms * timing.calls_per_block < 150


def test_calls_longer_than_the_seconds_are_all_measured(cpu):
    call = Calls(0.1)
    timing = time_calls(call, cpu, 0.05)
    assert (timing.n_blocks, timing.calls_per_block, call.count) == (2, 1, 2)
    assert timing.warm_up_seconds == 0
    assert timing.ms == pytest.approx((timing.fastest_ms + timing.slowest_ms) / 2)


def test_calls_that_come_in_bursts_are_counted_by_their_mean(cpu):
    """As a loader's do: the shortest call says nothing of how many fit into the seconds."""
    made = 0

    def call() -> None:
        nonlocal made
        made += 1
        if made % 8 == 0:
            time.sleep(0.04)

    timing = time_calls(call, cpu, 0.4)
    assert timing.n_blocks * timing.calls_per_block < 8 * 0.4 / 0.04 * 2


def test_no_block_is_shorter_than_a_burst(cpu):
    call = Calls(0.001)
    timing = time_calls(call, cpu, 0.01, burst=8)
    assert timing.calls_per_block == 8
    assert call.count >= 8 * timing.n_blocks


def test_scaled_is_the_time_of_more_work():
    timing = Timing(2.0, 1.0, 4.0, n_blocks=7, calls_per_block=3, warm_up_seconds=0.5)
    scaled = timing.scaled(10)
    assert (scaled.ms, scaled.fastest_ms, scaled.slowest_ms) == (20, 10, 40)
    assert (scaled.spread, scaled.n_blocks, scaled.warm_up_seconds) == (4, 7, 0.5)
