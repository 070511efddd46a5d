"""Ctrl-C and SIGTERM become a request that the trainer reads between two steps."""

import signal
import threading
from types import FrameType
from typing import Any

from dcdc.errors import PeerLostError


class Interruption:
    """Inside the block the first signal sets `wanted`; a second one acts as it always does.

    Not so with `ignore_repeats`: torchrun repeats to its processes what a terminal has told them
    already, and ends by itself those that take too long.
    """

    def __init__(self, *, ignore_repeats: bool = False) -> None:
        self.ignore_repeats = ignore_repeats
        self.wanted: str | None = None
        """Name of the signal received, if any."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interruption":
        # Python lets the main thread alone set handlers; elsewhere signals are not ours.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A lost process has torchrun end the others: they should still say why.
        if kind is None or not issubclass(kind, PeerLostError):
            self._restore()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.wanted = signal.Signals(number).name
        if not self.ignore_repeats:
            self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
