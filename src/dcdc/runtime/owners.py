"""Which process a file belongs to, by a mark in its name, and whether that process still lives."""

import ctypes
import hashlib
import os
import socket
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_DAY = 24 * 3600.0
# Of Windows: PROCESS_QUERY_LIMITED_INFORMATION, ERROR_ACCESS_DENIED, STILL_ACTIVE.
_MAY_BE_ASKED, _DENIED, _STILL_RUNS = 0x1000, 5, 259


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


if sys.platform == "win32":  # where a signal 0 would be Ctrl-C

    def _lives(number: int) -> bool:
        """By a handle to the process, which is there until its last one is closed."""
        kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = kernel.OpenProcess(_MAY_BE_ASKED, False, number)
        if not handle:
            return ctypes.get_last_error() == _DENIED
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return code.value == _STILL_RUNS

else:

    def _lives(number: int) -> bool:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            return True
        return True
