"""Every file operation of a process below a folder: counted, and one of them met by a kill or a
fault.

Python tells of opens, renames, removals and the like by its audit events; writes, truncations and
fsync are seen by standing in their place. Writers in C++ and Rust (Parquet, safetensors) are seen
by the flush and the rename that follow them.
"""

import builtins
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TWO_PATHS = {"os.rename", "os.link", "os.symlink"}
_ONE_PATH = {"os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
_NEEDS_ROOM = {"open", "write", "truncate", "fsync", "os.mkdir", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Before = Callable[[str, str], bool]
"""Called with the kind of an operation and its path; whether a write is to be done by half, with
a kill after it."""


@dataclass
class Disturbance:
    """`how` meets the `number`-th operation: kill, ENOSPC (from then on) or EIO (once)."""

    how: str
    number: int
    seen: int = 0

    def __call__(self, kind: str, path: str) -> bool:
        here, self.seen = self.seen == self.number, self.seen + 1
        if self.how == "kill" and here:
            if kind == "write":
                return True
            die()
        if self.how == "EIO" and here:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if self.how == "ENOSPC" and self.seen > self.number and kind in _NEEDS_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return False


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def watch(root: Path, before: Before) -> None:
    """From here on in this process, for good: for a child that ends soon."""
    place = os.path.realpath(root)
    busy = False

    def meet(kind: str, path: Any, folder: Any = None) -> bool:
        nonlocal busy
        found = _path_of(path, folder)
        if busy or found is None or not found.startswith(place + os.sep):
            return False
        busy = True
        try:
            return before(kind, os.path.relpath(found, place))
        finally:
            busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if (isinstance(flags, int) and flags & _WRITES) or _writes(mode):
                meet("open", path)
        elif event in _ONE_PATH:
            meet(event, arguments[0], arguments[-1] if event != "os.truncate" else None)
        elif event in _TWO_PATHS:
            meet(event, arguments[1], arguments[-1])

    sys.addaudithook(hook)
    _stand_in_for_open(meet)
    plain_fsync = os.fsync

    def fsync(file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        meet("fsync", _opened_as(number))
        plain_fsync(file)

    os.fsync = fsync


def _writes(mode: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def _opened_as(number: int) -> str:
    return str(Path(f"/proc/self/fd/{number}").readlink())


def _path_of(path: Any, folder: Any) -> str | None:
    """Where the last part is looked for, whatever a link there leads to."""
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    found = Path(os.fsdecode(path))
    if isinstance(folder, int) and folder >= 0:
        found = Path(_opened_as(folder)) / found
    found = Path.cwd() / found
    return str(found.parent.resolve() / found.name)


def _stand_in_for_open(meet: Callable[[str, Any], bool]) -> None:
    plain = io.open

    class Raw(io.FileIO):
        """A file whose writes are counted; half of the one that a kill meets is done."""

        def write(self, content: Any) -> int:
            if meet("write", self.name):
                super().write(memoryview(content).cast("B")[: memoryview(content).nbytes // 2])
                die()
            return super().write(content)

        def truncate(self, size: int | None = None) -> int:
            meet("truncate", self.name)
            return super().truncate(size)

    def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **more: Any) -> Any:
        known = set(mode) <= set("wax+bt") and _writes(mode)
        if not known or not isinstance(file, str | bytes | os.PathLike) or "opener" in more:
            return plain(file, mode, buffering, *rest, **more)
        raw = Raw(file, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        names = ("encoding", "errors", "newline")
        return io.TextIOWrapper(buffered, **dict(zip(names, rest, strict=False)), **more)

    io.open = builtins.open = opened  # type: ignore[assignment]
