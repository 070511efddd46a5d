"""One writer in a folder at a time, and a word on who it is for whoever comes second.

The lock is the operating system's, on the file `.dcdc-lock` in the folder, so the end of a process
is the end of its lock, however it ends. The file names its owner. It goes with the lock; a killed
owner leaves it, and the next one takes it over.

Where folders are shared between machines the system's lock may not reach the others. An owner
therefore touches its file every few seconds, and who finds a file of another machine watches it for
longer than that: an owner that lives is seen to.
"""

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from dcdc.errors import InputError
from dcdc.runtime.owners import running_kernel

LOCK = ".dcdc-lock"
_SECONDS_BETWEEN_SIGNS = 5.0
_SECONDS_WITHOUT_A_SIGN = 20.0
_SECONDS_OF_A_LOOK = 0.5
_SECONDS_TO_TRY = 0.2
"""For a file that goes just now."""
_ATTEMPTS = 8
_SECONDS_BETWEEN_ATTEMPTS = 0.001
"""Before the second; twice as long before each further one."""
_LONGEST_NOTE = 4096

_held: set[tuple[int, int, str]] = set()
"""Process, thread and folder."""


@contextmanager
def locked_folder(
    path: Path, remedy: Sequence[str] = (), *, may_nest: bool = True
) -> Iterator[bool]:
    """Alone in `path` among all who write there; InputError where another process is at work.

    The folder is made where there is none, and goes again if it is empty at the end. A block within
    one of the same thread is the same one, if it `may_nest`; True for the outermost.
    """
    key = (os.getpid(), threading.get_ident(), os.path.realpath(path))
    if key in _held and may_nest:
        yield False
        return
    made = _missing(path)
    lock = None
    try:
        lock = _acquire(path, remedy)
        _held.add(key)
        done = threading.Event()
        _sign(path / LOCK)
        threading.Thread(target=_give_signs, args=(path / LOCK, done), daemon=True).start()
        try:
            yield True
        finally:
            done.set()
            _held.discard(key)
    finally:
        if lock is not None and key[0] == os.getpid():
            with suppress(OSError):
                (path / LOCK).unlink(missing_ok=True)  # before others can have the lock
            lock.release()
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def refuse_if_locked(path: Path, remedy: Sequence[str] = ()) -> None:
    """InputError where another process is at work in `path`, which need not be there."""
    if os.path.lexists(path / LOCK):
        with locked_folder(path, remedy):
            pass


def _missing(path: Path) -> list[Path]:
    """The folders that will have to be made, innermost first."""
    return [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]


def _acquire(path: Path, remedy: Sequence[str]) -> Any:
    import filelock

    _require_lock_file(path / LOCK)
    for attempt in range(_ATTEMPTS):
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(path / LOCK)
            lock.acquire(timeout=_SECONDS_TO_TRY, poll_interval=_SECONDS_TO_TRY / 8)
            break
        except filelock.Timeout:
            raise _busy(path, _owner(path / LOCK), remedy) from None
        except (FileNotFoundError, FileExistsError):
            # Who made the folder, or one above it, has just removed it: between two looks of
            # `mkdir` a folder can be there and be gone.
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_SECONDS_BETWEEN_ATTEMPTS * 2**attempt)
    try:
        owner = _owner(path / LOCK)
        if owner.get("kernel", running_kernel()) != running_kernel() and _gives_signs(path / LOCK):
            raise _busy(path, owner, remedy)
    except BaseException:
        lock.release()
        raise
    return lock


def _require_lock_file(file: Path) -> None:
    """A pipe or a link in its place would hang, or be written through."""
    with suppress(OSError):
        if not stat.S_ISREG(file.lstat().st_mode):
            raise InputError(f"{file} is no regular file: remove it")


def _busy(path: Path, owner: dict[str, Any], remedy: Sequence[str]) -> InputError:
    told = [
        f"process {owner['process']}" if isinstance(owner.get("process"), int) else "",
        f"on {owner['host']}" if isinstance(owner.get("host"), str) else "",
    ]
    since = f"since {owner['since']}" if isinstance(owner.get("since"), str) else ""
    who = ", ".join(filter(None, (" ".join(filter(None, told)), since)))
    return InputError(
        f"another process is working in {path}{f' ({who})' if who else ''}",
        remedy=("wait for it", *remedy),
    )


def _sign(file: Path) -> None:
    owner = {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "since": datetime.now().astimezone().isoformat(" ", "seconds"),
        "kernel": running_kernel(),
    }
    with suppress(PermissionError) if os.name == "nt" else nullcontext():
        # On Windows a locked file may be closed to its owner too: then nobody is named.
        file.write_text(json.dumps(owner) + "\n", encoding="utf-8")


def _owner(file: Path) -> dict[str, Any]:
    """Empty where it cannot be told."""
    try:
        with file.open("rb") as content:
            owner = json.loads(content.read(_LONGEST_NOTE))
    except (OSError, ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _give_signs(file: Path, done: threading.Event) -> None:
    while not done.wait(_SECONDS_BETWEEN_SIGNS):
        with suppress(OSError):
            os.utime(file)


def _gives_signs(file: Path) -> bool:
    """By the file's own times alone: clocks of two machines need not agree."""
    before = _changed(file)
    end = time.monotonic() + _SECONDS_WITHOUT_A_SIGN
    while time.monotonic() < end:
        time.sleep(_SECONDS_OF_A_LOOK)
        if _changed(file) != before:
            return True
    return False


def _changed(file: Path) -> int:
    with file.open("rb") as opened:  # opened anew, a network's file system asks its server
        return os.fstat(opened.fileno()).st_mtime_ns
