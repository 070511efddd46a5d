"""By a clock that only calls move: a busy machine changes nothing."""

from time import sleep

import pytest

from dcdc.bench import timing as module
from dcdc.bench.timing import Timing, time_calls


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


class Calls:
    """Takes `seconds` each time; the first takes `first`."""

    def __init__(self, clock: Clock, seconds: float, first: float | None = None) -> None:
        self.clock, self.count = clock, 0
        self.seconds, self.first = seconds, seconds if first is None else first

    def __call__(self) -> None:
        self.clock.now += self.seconds if self.count else self.first
        self.count += 1


def test_quick_calls_are_timed_in_blocks_for_about_the_seconds(cpu, clock):
    call = Calls(clock, 0.002)
    timing = time_calls(call, cpu, 0.3)
    assert timing.n_blocks == 7
    assert timing.calls_per_block == 21  # 7 x 21 x 2 ms is .3 s
    n_warm_up = call.count - 7 * 21
    assert n_warm_up > 1
    assert timing.warm_up_seconds == pytest.approx(0.002 * n_warm_up)
    assert timing.ms == pytest.approx(2)
    assert timing.spread == timing.slowest_ms / timing.fastest_ms == pytest.approx(1)


def test_a_slow_first_call_is_warm_up_and_not_measured(cpu, clock):
    timing = time_calls(Calls(clock, 0.002, first=0.15), cpu, 0.3)
    assert timing.warm_up_seconds >= 0.15
    assert timing.slowest_ms == pytest.approx(2)


def test_calls_longer_than_the_seconds_are_all_measured(cpu, clock):
    call = Calls(clock, 0.1, first=0.3)
    timing = time_calls(call, cpu, 0.05)
    assert (timing.n_blocks, timing.calls_per_block, call.count) == (2, 1, 2)
    assert timing.warm_up_seconds == 0
    assert (timing.fastest_ms, timing.slowest_ms) == pytest.approx((100, 300))
    assert timing.ms == pytest.approx(200)


def test_calls_that_come_in_bursts_are_counted_by_their_mean(cpu, clock):
    """As a loader's do: the shortest call says nothing of how many fit into the seconds."""
    made = 0

    def call() -> None:
        nonlocal made
        made += 1
        clock.now += 0.04 if made % 8 == 0 else 1e-6

    timing = time_calls(call, cpu, 0.4)
    assert timing.n_blocks * timing.calls_per_block < 8 * 0.4 / 0.04 * 2


def test_no_block_is_shorter_than_a_burst(cpu, clock):
    call = Calls(clock, 0.001)
    timing = time_calls(call, cpu, 0.01, burst=8)
    assert timing.calls_per_block == 8
    assert call.count >= 8 * timing.n_blocks


def test_a_block_is_timed_by_the_real_clock(cpu):
    """A call that takes 20 ms is not told to take less, however busy the machine is."""
    assert time_calls(lambda: sleep(0.02), cpu, 0.05).fastest_ms >= 19


def test_scaled_is_the_time_of_more_work():
    timing = Timing(2.0, 1.0, 4.0, n_blocks=7, calls_per_block=3, warm_up_seconds=0.5)
    scaled = timing.scaled(10)
    assert (scaled.ms, scaled.fastest_ms, scaled.slowest_ms) == (20, 10, 40)
    assert (scaled.spread, scaled.n_blocks, scaled.warm_up_seconds) == (4, 7, 0.5)
