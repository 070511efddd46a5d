"""Files and folders that appear whole or not at all, and a lock for those who write them.

While it is written, `NAME.SUFFIX` is `.NAME.MARK.partial.SUFFIX`, and the mark tells its writer.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.runtime.owners import is_left, own_mark

if TYPE_CHECKING:
    import numpy as np

_PARTIAL = re.compile(r"\..+\.(?P<mark>\d+(-[0-9a-f]{8})?)\.partial(\.[^.]*)?")
_REPLACED = re.compile(r"\.(?P<name>.+)\.(?P<mark>\d+-[0-9a-f]{8})\.replaced")
"""A folder whose successor was about to take its name."""
_HERE = -100  # Linux: paths are relative to the current folder
_SWAP = 2


@contextmanager
def atomic_file(path: Path, *, lasts: bool = True) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it takes `path`'s place when the block ends.

    What need not last a power cut, since it can be made again, is not waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        yield temporary
        if lasts:
            _flush_to_disk(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` to fill; it takes `path`'s place when the block ends.

    Where the file system cannot exchange two folders (NFS), an older one is set aside for the
    moment of the change. After a kill just then, whoever writes there next puts it back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.glob(f".{escape(path.name)}.*"):
        found = _PARTIAL.fullmatch(other.name) or _REPLACED.fullmatch(other.name)
        if found and is_left(found["mark"], other):
            _clear(other)
    temporary = path.with_name(f".{path.name}.{own_mark()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            _flush_to_disk(file)
        _take_place(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(new: Path, path: Path) -> None:
    if not path.exists():
        new.rename(path)
        return
    shutil.copymode(path, new)
    if not exchange(new, path):
        aside = path.with_name(f".{path.name}.{own_mark()}.replaced")
        path.rename(aside)
        new.rename(path)
        shutil.rmtree(aside)


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")  # the same bytes everywhere


def write_arrays(path: Path, arrays: "Mapping[str, np.ndarray]", *, packed: bool = True) -> None:
    """In one `.npz`, which dcdc.stored.arrays reads; the same arrays give the same bytes. Packed
    ones are smaller; large ones are read sooner when they are not."""
    import numpy as np

    content: dict[str, Any] = dict(arrays)
    with atomic_file(path) as temporary:
        (np.savez_compressed if packed else np.savez)(temporary, **content)


def place(source: Path, target: Path) -> None:
    """Moves a whole file to `target`, which nothing may hold: FileExistsError otherwise."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(target.lstat(), source.lstat()):  # a kill came before the last line
            raise
    except (OSError, NotImplementedError):  # another disk, or a system or disk without such links
        _place_copy(source, target)
    source.unlink()


def copy_new(source: Path, target: Path) -> None:
    """A copy with its times and permissions, in a file that is new: what holds `target` is removed,
    and a link that somebody put there is never followed."""
    target.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with source.open("rb") as content:
        found = os.fstat(content.fileno())
        descriptor = os.open(target, flags, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(content, copy)
    follow = os.utime not in os.supports_follow_symlinks  # Windows knows no other way
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=follow)


def _place_copy(source: Path, target: Path) -> None:
    temporary = _beside(target)
    try:
        shutil.copyfile(source, temporary)
        _flush_to_disk(temporary)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        temporary.rename(target)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Where to write what is to become `path`; what the dead left of the same file goes."""
    for other in path.parent.glob(f".{escape(path.stem)}.*.partial{escape(path.suffix)}"):
        found = _PARTIAL.fullmatch(other.name)
        if found and is_left(found["mark"], other):
            with suppress(OSError):  # a folder, or another's
                other.unlink()
    # The suffix stays last: writers such as matplotlib choose the format by it.
    return path.with_name(f".{path.stem}.{own_mark()}.partial{path.suffix}")


def is_leftover(name: str) -> bool:
    """Whether a file or folder of this name is one that is being written, or was about to be."""
    return bool(_PARTIAL.fullmatch(name) or _REPLACED.fullmatch(name))


def remove_leftovers(folder: Path) -> None:
    """Clears what killed writers left half-written in `folder`, where the caller alone writes."""
    for leftover in list(folder.iterdir()):
        if is_leftover(leftover.name):
            _clear(leftover)


def _clear(leftover: Path) -> None:
    replaced = _REPLACED.fullmatch(leftover.name)
    if replaced and not os.path.lexists(leftover.with_name(replaced["name"])):
        leftover.rename(leftover.with_name(replaced["name"]))
    elif leftover.is_dir() and not leftover.is_symlink():
        shutil.rmtree(leftover, ignore_errors=True)
    else:
        leftover.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # which cannot be opened there
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
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


@cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    """0 where it was done."""
    platform = os.uname().sysname if hasattr(os, "uname") else ""
    library: Any = ctypes.CDLL(None) if platform in ("Linux", "Darwin") else None
    if platform == "Linux" and hasattr(library, "renameat2"):
        return lambda one, other: int(library.renameat2(_HERE, one, _HERE, other, _SWAP))
    if platform == "Darwin" and hasattr(library, "renamex_np"):
        return lambda one, other: int(library.renamex_np(one, other, _SWAP))
    return None


def exchange(one: Path, other: Path) -> bool:
    """Two folders change places in one step; whether it was done: file systems of a network, say,
    cannot."""
    call = _system_call()
    if call is None:
        return False
    sys.audit("os.rename", str(one), str(other), -1, -1)
    return call(os.fsencode(one), os.fsencode(other)) == 0
