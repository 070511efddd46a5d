"""TensorBoard event files beside what a person watches: a line of the history as curves."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.engine.observer import PassingObserver
from dcdc.errors import InputError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from dcdc.engine.observer import Observer

EVENTS = "events"
"""The folder in a run folder."""
_SCORES = ("acc", "nmi", "ari", "purity")
_PARTITION = ("active_clusters", "largest_share", "entropy_of_mean", "mean_confidence")


def require_tensorboard() -> None:
    """Before minutes go into reading images."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise InputError(
            "--tensorboard needs a package that is not here: pip install 'dcdc[tensorboard]'"
        ) from None


@contextmanager
def writing_events(
    observer: "Observer", run_folder: Path, earlier: Sequence[dict[str, Any]] = ()
) -> "Iterator[EventObserver]":
    """`earlier`: epochs that were done while nobody wrote."""
    watcher = EventObserver(observer, run_folder / EVENTS, earlier)
    try:
        yield watcher
    finally:
        watcher.close()


class EventObserver(PassingObserver):
    """Writes every finished epoch."""

    def __init__(
        self, observer: "Observer", folder: Path, earlier: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(observer)
        self.folder, self.earlier = folder, earlier
        self.writer: SummaryWriter | None = None

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # Epochs that a stopped run wrote after its last checkpoint come once more.
        self.writer = SummaryWriter(self.folder, purge_step=epoch + 1 if epoch else None)
        for record in self.earlier:
            self._write(record)
        super().on_start(epoch=epoch, epochs=epochs, steps_left=steps_left)

    def on_epoch(self, record: dict[str, Any]) -> None:
        self._write(record)
        super().on_epoch(record)

    def _write(self, record: dict[str, Any]) -> None:
        assert self.writer is not None
        for name, value in scalars(record).items():
            self.writer.add_scalar(name, value, record["epoch"])
        self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def scalars(record: dict[str, Any]) -> dict[str, float]:
    """A line of the history by curve; a group before the slash."""
    groups = dict.fromkeys(_SCORES, "scores") | dict.fromkeys(_PARTITION, "partition")
    groups["seconds"] = "time"
    return {
        name if "/" in name else f"{groups.get(name, 'loss')}/{name}": float(value)
        for name, value in record.items()
        if name != "epoch" and isinstance(value, int | float)
    }
