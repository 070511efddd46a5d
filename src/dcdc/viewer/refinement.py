"""The viewer's button "refine": `dcdc refine` as a process of its own, and what it says.

The viewed run stays as it is, and so does the page that shows it.
"""

import json
import shlex
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

from dcdc.run_folder import refined_name
from dcdc.viewer.server import Answer, Answering, Request, refusal

_PATH, _SCRIPT = "/refine", "/refine.js"
_LINES = 20
_SECONDS_TO_END = 20


class Refining:
    """Answers `/refine`, and leaves everything else to `others`."""

    def __init__(self, run: Path, others: Answering) -> None:
        self._run, self._others = run.resolve(), others
        self._alone = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._new: Path | None = None

    def __call__(self, request: Request) -> Answer:
        if request.path == _SCRIPT and request.method == "GET":
            script = files("dcdc.viewer").joinpath("templates/refine.js")
            return Answer("text/javascript; charset=utf-8", script.read_bytes())
        if request.path != _PATH:
            return self._others(request)
        if request.method == "POST":
            if request.kind != "application/json":
                return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "it has to be JSON")
            self.start()
        return Answer("application/json", json.dumps(self.told()).encode())

    def start(self) -> None:
        """A new run, beside the viewed one; nothing where one is being made."""
        with self._alone:
            if self._is_at_work():
                return
            self._lines.clear()
            self._new = refined_name(self._run)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dcdc", "refine", str(self._run), "--run", str(self._new)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C is for the viewer, which then ends it
            )
            self._listener = threading.Thread(
                target=self._listen, args=(self._process,), daemon=True
            )
            self._listener.start()

    def told(self) -> dict[str, Any]:
        """Its last line, whether that is a fault, the new run, and how to look at it."""
        is_at_work, process = self._is_at_work(), self._process
        code = None if process is None or is_at_work else process.returncode
        lines = list(self._lines)
        return {
            "is_at_work": is_at_work,
            "says": lines[-1].removeprefix("dcdc: ") if lines else "",
            "failed": code not in (None, 0),
            "run": str(self._new) if code == 0 else None,
            "look": shlex.join(["dcdc", "view", str(self._new)]) if code == 0 else None,
        }

    def stop(self) -> None:
        """With the viewer: what was trained is saved, as after any signal."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)

    def _is_at_work(self) -> bool:
        """Until all that it said was read."""
        return self._listener is not None and self._listener.is_alive()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            self._lines.extend(filter(None, map(str.strip, process.stdout)))
        process.wait()
