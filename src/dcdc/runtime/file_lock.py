"""One process at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: Path, on_busy: Callable[[], None]) -> Iterator[None]:
    """`on_busy` is called before another process is waited for; it may raise instead."""
    import filelock

    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        on_busy()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
