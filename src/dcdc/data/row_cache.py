"""Rows of pixels that are made once and kept: built in order, resumed, shared and checked.

`decoded/KEY/` holds `rows` (uint8, one image after the other), `journal` (a first line with the
shape, then a line per block: how many source rows it covers, a check sum, what was left out) and,
when all is there, `done` (size and time of `rows`). A reader trusts `rows` as long as these two
are as `done` says, and reads every check sum otherwise. Shapes: N rows kept of those read.
"""

import io
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.cache_folder import VARIABLE, cache_folder, keeping
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import write_text

_FORMAT = 1
_WHAT = "decoded images"
_FILES = ("rows", "journal", "done")
Shape = tuple[int, int, int]  # H, W, C


@dataclass(frozen=True)
class Block:
    """What some rows of a source became."""

    pixels: NDArray[np.uint8]
    """Kept rows x H x W x C."""
    n_read: int
    skipped: tuple[tuple[int, str], ...] = ()
    """Source rows that were left out, and why."""


@dataclass(frozen=True)
class CachedRows:
    images: NDArray[np.uint8]
    """N x H x W x C, memory-mapped."""
    skipped: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class RowSource:
    key: str
    """Names content, size and policy: equal keys mean equal rows."""
    n_rows: int
    shape: Shape
    blocks: Callable[[int], Iterator[Block]]
    """From a source row on, in order."""


def _ignore(*_: Any) -> None:
    pass


def cached_rows(
    source: RowSource,
    *,
    on_skip: Callable[[int, str], None] = _ignore,
    progress: Callable[[int, int], None] = _ignore,
    on_wait: Callable[[], None] = _ignore,
) -> CachedRows:
    """The rows of `source`, from the cache or into it.

    `on_skip` hears of every row left out, also of one known from an earlier build; raising there
    ends the build, which a later call goes on with. `on_wait` is called when another process is
    building the same rows.
    """
    import filelock

    folder = cache_folder() / "decoded" / source.key
    with keeping(_WHAT, folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
    if not _Build(folder).is_trusted():
        lock = filelock.FileLock(folder.with_suffix(".lock"))
        with keeping(_WHAT, folder.parent):
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                on_wait()
                lock.acquire()
        try:
            _complete(_Build(folder), source, on_skip, progress)
        finally:
            lock.release()
    return _opened(_Build(folder), on_skip)


@contextmanager
def kept_note(key: str) -> Iterator[dict[str, Any]]:
    """A small mapping that is kept beside the rows, empty at first."""
    file = cache_folder() / "decoded" / f"{key}.note"
    lines = _json_lines(file)
    note = lines[0] if lines else {}
    known = dict(note)
    yield note
    if note != known:
        with keeping(_WHAT, file.parent):
            write_text(file, json.dumps(note))


class _Build:
    """The files of one build, finished or not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows, self.journal, self.done = (folder / name for name in _FILES)
        lines = _json_lines(self.journal)
        self.header = lines[0] if lines and lines[0].get("format") == _FORMAT else None
        self.entries = lines[1:] if self.header else []

    @property
    def shape(self) -> Shape:
        assert self.header is not None
        height, width, channels = self.header["shape"]
        return height, width, channels

    @property
    def n_kept(self) -> int:
        return sum(entry["kept"] for entry in self.entries)

    @property
    def n_read(self) -> int:
        return sum(entry["read"] for entry in self.entries)

    @property
    def skipped(self) -> tuple[tuple[int, str], ...]:
        return tuple((row, why) for entry in self.entries for row, why in entry["skipped"])

    def is_trusted(self) -> bool:
        """Whole, and untouched since it was last checked."""
        stamp = _json_lines(self.done)
        return bool(stamp) and self.header is not None and stamp[0] == self._stamp()

    def finish(self) -> None:
        write_text(self.done, json.dumps(self._stamp()))

    def _stamp(self) -> dict[str, Any]:
        try:
            stat = self.rows.stat()
            journal = zlib.crc32(self.journal.read_bytes())
        except FileNotFoundError:
            return {}
        return {"bytes": stat.st_size, "changed": stat.st_mtime_ns, "journal": journal}

    def n_good_blocks(self) -> int:
        """Reads every check sum; the number of blocks before the first bad one."""
        row_bytes = int(np.prod(self.shape))
        try:
            with self.rows.open("rb") as rows:
                for number, entry in enumerate(self.entries):
                    piece = rows.read(entry["kept"] * row_bytes)
                    if zlib.crc32(piece) != entry["crc"]:
                        return number
        except FileNotFoundError:
            return 0
        return len(self.entries)

    def clear(self) -> None:
        # unlinked, not cut short: another process may have the old rows mapped
        for file in (self.done, self.journal, self.rows):
            file.unlink(missing_ok=True)


def _complete(
    build: _Build,
    source: RowSource,
    on_skip: Callable[[int, str], None],
    progress: Callable[[int, int], None],
) -> None:
    if build.is_trusted():  # by the process that was waited for
        return
    if build.header == _header(source):
        good = build.n_good_blocks()
        whole = good == len(build.entries)
        if whole and build.n_read == source.n_rows:
            build.finish()
            return
        if build.done.exists():  # once whole, now damaged
            build.clear()
        else:
            del build.entries[good:]
    else:
        build.clear()
    if not build.journal.exists():
        build.header, build.entries = _header(source), []
    _require_room(build, source)
    for row, why in build.skipped:
        on_skip(row, why)
    _append(build, source, on_skip, progress)
    with keeping(_WHAT, build.folder.parent):
        build.finish()


def _header(source: RowSource) -> dict[str, Any]:
    return {"format": _FORMAT, "n_rows": source.n_rows, "shape": list(source.shape)}


def _append(
    build: _Build,
    source: RowSource,
    on_skip: Callable[[int, str], None],
    progress: Callable[[int, int], None],
) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in (build.header, *build.entries))
    with keeping(_WHAT, build.folder.parent):
        write_text(build.journal, lines)
    done = build.n_read
    # unbuffered: rows are in the file before the line that vouches for them
    with build.rows.open("ab", 0) as rows, build.journal.open("ab", 0) as journal:
        rows.truncate(build.n_kept * int(np.prod(build.shape)))
        for block in source.blocks(done):
            for row, why in block.skipped:
                on_skip(row, why)
            piece = np.ascontiguousarray(block.pixels).tobytes()
            entry = {
                "read": block.n_read,
                "kept": len(block.pixels),
                "crc": zlib.crc32(piece),
                "skipped": block.skipped,
            }
            try:
                with keeping(_WHAT, build.folder.parent):
                    _write(rows, piece)
                    _write(journal, json.dumps(entry).encode() + b"\n")
            except InputError:
                build.clear()  # most likely a full disk: give the room back
                raise
            done += block.n_read
            progress(done, source.n_rows)
        os.fsync(rows.fileno())
    assert done == source.n_rows, (done, source.n_rows)


def _write(file: io.FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _require_room(build: _Build, source: RowSource) -> None:
    needed = (source.n_rows - build.n_read) * int(np.prod(build.shape))
    free = shutil.disk_usage(build.folder).free
    if needed > free:
        raise InputError(
            f"the decoded images need {needed / 1e9:.1f} GB, {build.folder.parent} has "
            f"{free / 1e9:.1f} GB free: make room, name another folder by {VARIABLE}, or use a "
            "smaller --size"
        )


def _opened(build: _Build, on_skip: Callable[[int, str], None]) -> CachedRows:
    for row, why in build.skipped:
        on_skip(row, why)
    shape = (build.n_kept, *build.shape)
    if build.n_kept == 0:  # nothing can be mapped of an empty file
        return CachedRows(np.empty(shape, np.uint8), build.skipped)
    return CachedRows(np.memmap(build.rows, np.uint8, mode="r", shape=shape), build.skipped)


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines; a last one that was cut short is left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return []
    lines: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


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
