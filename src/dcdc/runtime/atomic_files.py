"""Files and folders that appear whole or not at all, and a lock for those who write them."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it takes `path`'s place when the block ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays last: writers such as matplotlib choose the format by it.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield temporary
        _flush_to_disk(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` to fill; it becomes `path` when the block ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            _flush_to_disk(file)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def place(source: Path, target: Path) -> None:
    """Moves a whole file to `target`, which nothing may hold: FileExistsError otherwise."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(target.lstat(), source.lstat()):  # a kill came before the last line
            raise
    except OSError:  # another disk, or one without hard links
        _place_copy(source, target)
    source.unlink()


def copy_new(source: Path, target: Path) -> None:
    """A copy with its times and permissions, in a file that is new: what holds `target` is removed,
    and a link that somebody put there is never followed."""
    target.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with source.open("rb") as content:
        found = os.fstat(content.fileno())
        descriptor = os.open(target, flags, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(content, copy)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)


def _place_copy(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.partial{target.suffix}")
    try:
        shutil.copyfile(source, temporary)
        _flush_to_disk(temporary)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        temporary.rename(target)
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Clears what a killed writer left half-written in `folder`."""
    for leftover in folder.glob(".*.partial*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
