"""A run in a child process: watched, stopped when asked to, and its end told as one fault."""

import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from dcdc.engine.interruption import Interruption
from dcdc.engine.observer import Observer
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.experiments.method_runs import ERRORS, MethodRun
from dcdc.experiments.relay import tell
from dcdc.runtime.atomic_files import write_text

GRACE_SECONDS = 60.0
"""From SIGINT to SIGKILL: an epoch's evaluation and its saving fit in."""
_LOOK_SECONDS = 0.1
_COMMAND = (sys.executable, "-m", "dcdc.experiments.method_child")


@dataclass(frozen=True)
class Children:
    watch: Callable[[], AbstractContextManager[Observer]]
    is_over: Callable[[], bool]
    grace: float = GRACE_SECONDS

    def work(self, run: MethodRun, _begun: bool) -> None:
        """Returns when the run is done; raises its fault, or Interrupted."""
        with (
            self.watch() as observer,
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
                process.send_signal(signal.SIGINT)
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
