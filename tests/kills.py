"""Kills of a real process before each operation on files below a folder.

The interpreter itself tells of operations, by its audit events; what a library in another language
writes by itself is not among them.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_ONE_PATH = ("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.utime", "os.chmod")
_TWO_PATHS = ("os.rename", "os.link", "os.symlink")


def _operation(event: str, arguments: tuple[Any, ...], root: str) -> str | None:
    """What is about to be done below `root`, if it is that."""
    if event == "open":
        paths = arguments[:1] if (arguments[2] or 0) & _WRITES else ()
    elif event in _ONE_PATH:
        paths = arguments[:1]
    elif event in _TWO_PATHS:
        paths = arguments[:2]
    else:
        return None
    for path in paths:
        if not isinstance(path, str | bytes | os.PathLike):
            continue
        # A name alone: shutil.rmtree walks by descriptors.
        text = os.fsdecode(path)
        if "/" not in text or os.path.abspath(text).startswith(root):  # noqa: PTH100
            return f"{event} {text}"
    return None


_watchers: list[tuple[Callable[[str], None], str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for tell, root in _watchers:
        operation = _operation(event, arguments, root)
        if operation is not None:
            tell(operation)


_is_installed = False


@contextmanager
def watched(tell: Callable[[str], None], root: Path) -> Iterator[None]:
    """`tell` hears of every operation below `root`, before it is done."""
    global _is_installed
    if not _is_installed:
        sys.addaudithook(_hook)
        _is_installed = True
    _watchers.append((tell, str(root)))
    try:
        yield
    finally:
        _watchers.pop()


def killed_before(number: int, work: Callable[[], object], root: Path) -> bool:
    """Whether `work`, in a process of its own, came to its operation `number` and was killed."""
    child = os.fork()
    if not child:
        _work_in_child(number, work, root)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), code
    return code != 0


def _work_in_child(number: int, work: Callable[[], object], root: Path) -> None:
    left = number

    def count_down(_: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        with watched(count_down, root):
            work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
