"""A run in a child process: watched, stopped when asked to, and its end told as one fault.

What the child's method tells its observer comes as lines of JSON, and is told to the parent's.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TextIO

from dcdc.engine.interruption import Interruption
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.experiments.method_runs import ERRORS, MethodRun
from dcdc.runtime.atomic_files import write_text

if TYPE_CHECKING:
    from torch import Tensor

GRACE_SECONDS = 60.0
"""From SIGINT to SIGKILL: an epoch's evaluation and its saving fit in."""
_LOOK_SECONDS = 0.1
_SECONDS_BETWEEN = 0.5
_PASSED_ON = ("on_start", "on_epoch", "note", "warn")
_COMMAND = (sys.executable, "-m", "dcdc.experiments.method_child")


@dataclass(frozen=True)
class Children:
    watch: Callable[[str], AbstractContextManager[Observer]]
    """Of a run by its name."""
    is_over: Callable[[], bool]
    grace: float = GRACE_SECONDS

    def work(self, run: MethodRun, _begun: bool) -> None:
        """Returns when the run is done; raises its fault, or Interrupted."""
        with (
            self.watch(f"{run.row.title}, seed {run.seed}") as observer,
            Interruption() as interruption,
            tempfile.TemporaryFile() as errors,
            _started(run.job(), errors) as process,
        ):
            last = self._follow(process, observer, interruption)
            code = process.wait()
            said = _text(errors)
        asked = interruption.wanted or ("SIGINT" if self.is_over() else "")
        match last.get("event"):
            case "done":
                if interruption.wanted:
                    raise Interrupted(interruption.wanted, 0)
            case "refused":
                raise InputError(**last["parts"])
            case "failed":
                raise TrainingError(**last["parts"])
            case "stopped":
                raise Interrupted(asked or last["signal"], 0)
            case _ if asked:
                raise Interrupted(asked, 0)
            case _:
                raise TrainingError(_end(run, code, said))

    def _follow(
        self,
        process: "subprocess.Popen[bytes]",
        observer: Observer,
        interruption: Interruption,
    ) -> dict[str, Any]:
        """The last event."""
        assert process.stdout is not None
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        last: dict[str, Any] = {}
        kill_at: float | None = None
        while True:
            try:
                line = lines.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                line = None
            if line == b"":
                return last
            if line is not None:
                last = json.loads(line)
                tell(observer, last)
            if kill_at is None and (interruption.wanted or self.is_over()):
                # Windows sends no Ctrl-C to one process alone.
                process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGINT)
                kill_at = time.monotonic() + self.grace
            if kill_at is not None and time.monotonic() > kill_at:
                process.kill()


@contextmanager
def _started(job: dict[str, Any], errors: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    # In a session of its own, Ctrl-C comes to it by us, once.
    process = subprocess.Popen(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it is gone: its end says why
                process.stdin.write(json.dumps(job).encode() + b"\n")
                process.stdin.flush()
            yield process
        finally:
            process.kill()


def _read(stdout: IO[bytes], lines: "queue.Queue[bytes]") -> None:
    for line in stdout:
        lines.put(line)
    lines.put(b"")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def _end(run: MethodRun, code: int, said: str) -> str:
    """In one line; what else it said is kept beside."""
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", as where memory runs out" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
    write_text(run.folder / ERRORS, said + "\n")
    last = (said.splitlines() or ["no word"])[-1]
    return f"its process ended with {last}; more in {run.folder / ERRORS}"


class Relay(SilentObserver):
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
