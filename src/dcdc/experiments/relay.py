"""What a child's method tells its observer, as lines of JSON, and told again to the parent's."""

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from dcdc.engine.observer import Observer

if TYPE_CHECKING:
    from torch import Tensor

_SECONDS_BETWEEN = 0.5
_PASSED_ON = ("on_start", "on_epoch", "note", "warn")


class Relay:
    """The child's observer. Steps are counted, not told one by one, and terms are not read."""

    def __init__(self, lines: TextIO) -> None:
        self.lines = lines
        self.steps, self.images, self.told_at = 0, 0, 0.0

    def send(self, event: str, **values: Any) -> None:
        # Figures may be numpy's or torch's.
        self.lines.write(json.dumps({"event": event, **values}, default=float) + "\n")
        self.lines.flush()

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        self.send("on_start", epoch=epoch, epochs=epochs, steps_left=steps_left)

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:  # noqa: ARG002
        self.steps += 1
        self.images += n_images
        if time.monotonic() - self.told_at > _SECONDS_BETWEEN:
            self._send_steps()

    def on_epoch(self, record: dict[str, Any]) -> None:
        self._send_steps()
        self.send("on_epoch", record=record)

    def note(self, message: str) -> None:
        self.send("note", message=message)

    def warn(self, message: str) -> None:
        self.send("warn", message=message)

    def _send_steps(self) -> None:
        if self.steps:
            self.send("steps", steps=self.steps, images=self.images)
        self.steps, self.images, self.told_at = 0, 0, time.monotonic()


def tell(observer: Observer, event: Mapping[str, Any]) -> None:
    """An event that is not for an observer is passed over."""
    values = {key: value for key, value in event.items() if key != "event"}
    if event["event"] == "steps":
        for _ in range(event["steps"]):
            observer.on_step({}, event["images"] // event["steps"])
    elif event["event"] in _PASSED_ON:
        getattr(observer, event["event"])(**values)
