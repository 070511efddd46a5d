"""What the trainer tells those who watch; nothing below the entry points prints."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # the entry points that watch start without torch
    from torch import Tensor


class Observer(Protocol):
    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        """Training begins (again) after `epoch` finished epochs."""

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        """A step on `n_images` was queued; reading a term waits for the device."""

    def on_epoch(self, record: dict[str, Any]) -> None:
        """An epoch is finished: its line of the history."""

    def counting(self, what: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """Of a stage before training: what it gives hears how much is done, and of how much."""
        ...

    def note(self, message: str) -> None:
        """How the run is being done."""

    def warn(self, message: str) -> None:
        """Something a person should know, while the run goes on."""


class SilentObserver:
    def counting(self, what: str) -> AbstractContextManager[Callable[[int, int], None]]:  # noqa: ARG002
        return nullcontext(lambda *_: None)

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        pass

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any]) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def warn(self, message: str) -> None:
        pass


class PassingObserver:
    """Tells another everything: what watches beside it changes only what it adds."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def counting(self, what: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return self.observer.counting(what)

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        self.observer.on_start(epoch=epoch, epochs=epochs, steps_left=steps_left)

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        self.observer.on_step(terms, n_images)

    def on_epoch(self, record: dict[str, Any]) -> None:
        self.observer.on_epoch(record)

    def note(self, message: str) -> None:
        self.observer.note(message)

    def warn(self, message: str) -> None:
        self.observer.warn(message)
