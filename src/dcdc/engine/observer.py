"""What the trainer tells those who watch; nothing below the faces prints."""

from typing import Any, Protocol

from torch import Tensor


class Observer(Protocol):
    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        """Training begins (again) after `epoch` finished epochs."""

    def on_step(self, terms: dict[str, Tensor], n_images: int) -> None:
        """A step on `n_images` was queued; reading a term waits for the device."""

    def on_epoch(self, record: dict[str, Any]) -> None:
        """An epoch is finished: its line of the history."""

    def note(self, message: str) -> None:
        """How the run is being done."""

    def warn(self, message: str) -> None:
        """Something a person should know, while the run goes on."""


class SilentObserver:
    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        pass

    def on_step(self, terms: dict[str, Tensor], n_images: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any]) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def warn(self, message: str) -> None:
        pass
