"""A terminal of 80 columns, as a person has it: a command goes in, what is drawn comes out."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

COLUMNS, ROWS = 80, 24
_CODES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()=>][0-9A-B]?")
_SECONDS_OF_A_LOOK = 0.2


@dataclass(frozen=True)
class Shown:
    code: int
    text: str
    """Without the codes that steer a terminal."""
    seconds: float
    is_over: bool = True
    """False where it took too long and was ended."""

    @property
    def lines(self) -> list[str]:
        """All that stood in a line at some time, also what was drawn over."""
        return [line for line in re.split(r"[\r\n]+", self.text) if line.strip()]

    @property
    def too_long(self) -> list[str]:
        return [line for line in self.lines if width(line) > COLUMNS]


def width(line: str) -> int:
    """In columns of a terminal."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in line)
    none = sum(unicodedata.combining(letter) > 0 for letter in line)
    return len(line.rstrip()) + wide - none


def run(
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit: float,
    press: Callable[[str], bytes] = lambda _: b"",
) -> Shown:
    """By a shell. `press` sees what was drawn since it last pressed a key, and may press some."""
    started = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(folder)
        os.execve("/bin/bash", ["bash", "-c", command], dict(environment))
    drawn, seen, is_over = b"", 0, True
    try:
        while True:
            if time.monotonic() - started > limit and is_over:
                is_over = False
                os.killpg(child, signal.SIGKILL)  # its own session, by pty.fork
            if not select.select([terminal], [], [], _SECONDS_OF_A_LOOK)[0]:
                continue
            try:
                piece = os.read(terminal, 65_536)
            except OSError:  # how the end of a terminal is told
                break
            if not piece:
                break
            drawn += piece
            if keys := press(plain(drawn[seen:])):
                seen = len(drawn)
                os.write(terminal, keys)
    finally:
        os.close(terminal)  # which ends what still runs there
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Shown(code, plain(drawn), time.monotonic() - started, is_over)


def plain(drawn: bytes) -> str:
    return _CODES.sub("", drawn.decode(errors="replace"))
