"""Training as it is watched from Python: plain lines, where they are asked for."""

from typing import Any

from dcdc.engine.observer import SilentObserver


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
