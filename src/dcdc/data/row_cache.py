"""Rows of pixels that are made once and kept: built in order, resumed, shared and checked.

`decoded/KEY/` holds `rows` (uint8, one image after the other) with its `journal` and, when all is
there, `done` (size and time of `rows`, check sum of `journal`). A reader trusts `rows` as long as
these are as `done` says, and reads every check sum otherwise. Shapes: N rows kept of those read.
"""

import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.cache_folder import VARIABLE, cache_folder, keeping
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import file_lock, write_text
from dcdc.runtime.journal import JOURNAL, JournaledFolder, Skips
from dcdc.stored import files
from dcdc.stored.reading import DamagedFileError

_FORMAT = 2
_WHAT = "decoded images"
_FILES = ("rows", JOURNAL, "done")
Shape = tuple[int, int, int]  # H, W, C


@dataclass(frozen=True)
class Block:
    """What some rows of a source became."""

    pixels: NDArray[Any]
    """Kept rows x H x W x C, of bytes; of a stream of feature vectors, kept rows x D."""
    n_read: int
    skipped: Skips = ()


@dataclass(frozen=True)
class CachedRows:
    images: NDArray[np.uint8]
    """N x H x W x C, memory-mapped."""
    skipped: Skips


@dataclass(frozen=True)
class RowSource:
    key: str
    """Names content, size and policy: equal keys mean equal rows."""
    n_rows: int
    shape: Shape
    blocks: Callable[[int], Iterator[Block]]
    """From a source row on, in order."""
    what: str = _WHAT
    """What the rows are, for messages."""


def _ignore(*_: Any) -> None:
    pass


def cached_rows(
    source: RowSource,
    *,
    on_skip: Callable[[int, str], None] = _ignore,
    progress: Callable[[int, int], None] | None = None,
    on_wait: Callable[[], None] | None = None,
) -> CachedRows:
    """The rows of `source`, from the cache or into it.

    `on_skip` hears of every row left out, also of one known from an earlier build; raising there
    ends the build, which a later call goes on with. `on_wait` is called when another process is
    building the same rows.
    """
    path = cache_folder() / "decoded" / source.key
    with keeping(source.what, path.parent):
        path.mkdir(parents=True, exist_ok=True)
    build = _Build(path, source)
    if not build.is_trusted():
        with ExitStack() as stack:
            with keeping(source.what, path.parent):
                stack.enter_context(file_lock(path.with_suffix(".lock"), on_wait or _ignore))
            build = _Build(path, source)  # as the process that was waited for left it
            if not build.is_trusted():
                _complete(build, source, on_skip, progress or _ignore)
    return _opened(build, on_skip)


def are_kept(source: RowSource) -> bool:
    """Whether `cached_rows` would find them all."""
    path = cache_folder() / "decoded" / source.key
    return path.is_dir() and _Build(path, source).is_trusted()


@contextmanager
def kept_note(key: str) -> Iterator[dict[str, Any]]:
    """A small mapping that is kept beside the rows; empty at first, or where it is damaged."""
    file = cache_folder() / "decoded" / f"{key}.note"
    note: dict[str, Any] = {}
    with suppress(DamagedFileError):
        note = files.CACHE_NOTE.read(file)
    known = dict(note)
    yield note
    if note != known:
        with keeping(_WHAT, file.parent):
            write_text(file, files.CACHE_NOTE.text(note))


class _Build(JournaledFolder):
    """The files of one build, finished or not."""

    def __init__(self, path: Path, source: RowSource) -> None:
        header = {"format": _FORMAT, "n_rows": source.n_rows, "shape": list(source.shape)}
        super().__init__(path, header, {"rows": b""})
        self.shape, self.rows, self.done = source.shape, path / "rows", path / "done"
        self.is_known = self.load() == header

    def is_trusted(self) -> bool:
        """Whole, and untouched since it was last checked."""
        n_bytes = self.n_kept * int(np.prod(self.shape))
        if not self.is_known or self.n_read != self.header["n_rows"]:
            return False
        try:
            stamp = files.CACHE_DONE.read(self.done)
        except DamagedFileError:
            return False
        return stamp == self._stamp() and stamp["bytes"] == n_bytes

    def finish(self) -> None:
        write_text(self.done, files.CACHE_DONE.text(self._stamp()))

    def _stamp(self) -> dict[str, Any]:
        try:
            stat = self.rows.stat()
            journal = zlib.crc32(self.journal.read_bytes())
        except FileNotFoundError:
            return {}
        return {"bytes": stat.st_size, "changed": stat.st_mtime_ns, "journal": journal}

    def clear(self) -> None:
        # unlinked, not cut short: another process may have the old rows mapped
        for file in (self.done, self.journal, self.rows):
            file.unlink(missing_ok=True)
        self.keep(0)


def _complete(
    build: _Build,
    source: RowSource,
    on_skip: Callable[[int, str], None],
    progress: Callable[[int, int], None],
) -> None:
    n_good, n_blocks = build.n_good_blocks(), len(build.entries)
    if build.is_known and n_good == n_blocks and build.n_read == source.n_rows:
        build.finish()
        return
    if build.is_known and not build.done.exists():
        build.keep(n_good)
    else:  # of another source or format, or once whole and now damaged
        build.clear()
    _require_room(build, source)
    for row, why in build.skipped:
        on_skip(row, why)
    _append(build, source, on_skip, progress)
    with keeping(source.what, build.path.parent):
        build.finish()


def _append(
    build: _Build,
    source: RowSource,
    on_skip: Callable[[int, str], None],
    progress: Callable[[int, int], None],
) -> None:
    with ExitStack() as stack:
        with keeping(source.what, build.path.parent):
            appender = stack.enter_context(build.appending())
        for block in source.blocks(build.n_read):
            for row, why in block.skipped:
                on_skip(row, why)
            try:
                with keeping(source.what, build.path.parent):
                    appender.append(
                        {"rows": np.ascontiguousarray(block.pixels).tobytes()},
                        n_read=block.n_read,
                        n_kept=len(block.pixels),
                        skipped=block.skipped,
                    )
            except InputError:
                build.clear()  # most likely a full disk: give the room back
                raise
            progress(build.n_read, source.n_rows)
    assert build.n_read == source.n_rows, (build.n_read, source.n_rows)


def _require_room(build: _Build, source: RowSource) -> None:
    needed = (source.n_rows - build.n_read) * int(np.prod(build.shape))
    free = shutil.disk_usage(build.path).free
    if needed > free:
        smaller = ("use a smaller {size}",) if source.what == _WHAT else ()
        raise InputError(
            f"the {source.what} need {needed / 1e9:.1f} GB, {build.path.parent} has "
            f"{free / 1e9:.1f} GB free",
            remedy=("make room", f"name another folder by {VARIABLE}", *smaller),
        )


def _opened(build: _Build, on_skip: Callable[[int, str], None]) -> CachedRows:
    for row, why in build.skipped:
        on_skip(row, why)
    shape = (build.n_kept, *build.shape)
    if build.n_kept == 0:  # nothing can be mapped of an empty file
        return CachedRows(np.empty(shape, np.uint8), build.skipped)
    return CachedRows(np.memmap(build.rows, np.uint8, mode="r", shape=shape), build.skipped)


def clear_rows() -> list[tuple[str, str]]:
    """Removes every set of rows that nobody is building; what was left, and why."""
    import filelock

    left = []
    folder = cache_folder() / "decoded"
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        if entry.suffix == ".lock" or entry.match(".*.partial*"):
            continue  # without its lock two processes may build; a note may be half-written now
        if entry.suffix == ".note" and entry.is_file():
            entry.unlink()
        elif entry.is_symlink() or not _is_set_of_rows(entry):
            left.append((entry.name, "not made by dcdc"))
        else:
            try:
                with filelock.FileLock(entry.with_suffix(".lock"), timeout=0):
                    shutil.rmtree(entry)
            except filelock.Timeout:
                left.append((entry.name, "in use"))
    return left


def _is_set_of_rows(folder: Path) -> bool:
    return folder.is_dir() and all(
        path.name in _FILES or path.match(".*.partial*") for path in folder.iterdir()
    )
