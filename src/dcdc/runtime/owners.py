"""Which process a file belongs to, by a mark in its name, and whether that process still lives."""

import hashlib
import os
import socket
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_DAY = 24 * 3600.0


@cache
def running_kernel() -> str:
    """Another one for every machine, and after every start of it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


@cache
def _numbering() -> str:
    """Eight digits for where a process's number means that process: one machine's one container."""
    of_numbers = ""
    with suppress(OSError):
        of_numbers = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{running_kernel()} {of_numbers}".encode()).hexdigest()[:8]


def own_mark() -> str:
    return f"{os.getpid()}-{_numbering()}"


def is_left(mark: str, path: Path) -> bool:
    """Whether nobody who lives made what lies at `path`, with `mark` in its name.

    Processes elsewhere cannot be asked: what they made is left when nobody wrote to it for a day.
    """
    number, _, numbering = mark.partition("-")
    if numbering == _numbering():
        return not _lives(int(number))
    try:
        return time.time() - path.lstat().st_mtime > _DAY
    except FileNotFoundError:
        return False


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
