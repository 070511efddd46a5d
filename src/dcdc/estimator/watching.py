"""Training as it is watched from Python: a bar where it can be seen, plain lines if asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dcdc.engine.observer import Observer, SilentObserver
from dcdc.estimator.progress_bar import BarObserver, can_be_seen, drawn_bar


@contextmanager
def watching(verbose: int | None, title: str = "DCDC") -> Iterator[Observer]:
    """`verbose` None: a bar, where it can be seen; otherwise lines, as many as it says."""
    if verbose is None and can_be_seen():
        with drawn_bar() as bar:
            yield BarObserver(bar, title)
    else:
        yield EstimatorObserver(verbose or 0, title)


class EstimatorObserver(SilentObserver):
    """`verbose` 0 prints nothing, 1 a line per epoch, 2 also how the run is done.

    What is wrong with the partition after an epoch may be right later: `fit` warns of the last one.
    """

    def __init__(self, verbose: int, title: str = "DCDC") -> None:
        self.verbose = int(verbose)
        self.title = title
        self.epochs = 0

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:  # noqa: ARG002
        self.epochs = epochs

    def on_epoch(self, record: dict[str, Any]) -> None:
        if self.verbose:
            active = record.get("active_clusters")
            clusters = "" if active is None else f", {active}/{len(record['sizes'])} clusters"
            print(
                f"[{self.title}] epoch {record['epoch']}/{self.epochs}, "
                f"loss {record['loss']:.4f}{clusters}, {record['seconds']:.1f} s",
                flush=True,
            )

    def note(self, message: str) -> None:
        if self.verbose > 1:
            print(f"[{self.title}] {message}", flush=True)

    def warn(self, message: str) -> None:
        if self.verbose:
            print(f"[{self.title}] warning: {message}", flush=True)
