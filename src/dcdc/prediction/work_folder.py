"""`FILE.partial/`: what a prediction has done so far, so that whoever stops it loses little.

Parts (rows, clusters, features) only grow, in step. `journal` has a first line that says what they
are made of, then a line per block: how many rows of the source it covers, what was left out, and
length and check sum of its piece of every part. What no line vouches for is cut off and made again.
`whole` is there once all rows are, and from then on parts may leave for their places.
"""

import json
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dcdc.errors import InputError
from dcdc.runtime.atomic_files import write_text

_FORMAT = 1
_JOURNAL, _WHOLE, _LOCK, TABLE = "journal", "whole", "lock", "table"
_OWN_FILES = (_JOURNAL, _WHOLE, _LOCK, TABLE)


@dataclass(frozen=True)
class Entry:
    """A line of the journal."""

    n_read: int
    n_kept: int
    n_unlike: int
    skipped: tuple[tuple[int, str], ...]
    """Rows of the source, and why."""
    pieces: Mapping[str, tuple[int, int]]
    """By part: length and check sum."""

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> "Entry":
        return cls(
            n_read=int(line["n_read"]),
            n_kept=int(line["n_kept"]),
            n_unlike=int(line["n_unlike"]),
            skipped=tuple((int(row), str(why)) for row, why in line["skipped"]),
            pieces={part: (int(n), int(crc)) for part, (n, crc) in line["pieces"].items()},
        )


class WorkFolder:
    def __init__(self, path: Path, heads: Mapping[str, bytes], meaning: Mapping[str, str]) -> None:
        """`heads`: what each part begins with. `meaning`: what rows depend on, by a word for it."""
        self.path = path
        self.heads = heads
        self.header = {"format": _FORMAT, "meaning": dict(meaning), "parts": sorted(heads)}
        self.entries: list[Entry] = []
        self.n_read = self.n_kept = self.n_unlike = 0

    @property
    def skipped(self) -> tuple[tuple[int, str], ...]:
        return tuple(skipped for entry in self.entries for skipped in entry.skipped)

    @property
    def is_whole(self) -> bool:
        return (self.path / _WHOLE).exists()

    def part(self, name: str) -> Path:
        return self.path / name

    def recover(self) -> None:
        """Takes over what an earlier start left, up to the last block that is vouched for."""
        self._refuse_other_files()
        lines = _json_lines(self.path / _JOURNAL)
        if not lines:  # nothing there, or nothing that says what it is
            (self.path / _WHOLE).unlink(missing_ok=True)
        else:
            self._refuse_other_meaning(lines[0])
            entries = list(_entries(lines[1:]))
            n_good = len(entries) if self.is_whole else self._n_good_blocks(entries)
            for entry in entries[:n_good]:
                self.count(entry)
        if not self.is_whole:
            self._cut()

    def count(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.n_read += entry.n_read
        self.n_kept += entry.n_kept
        self.n_unlike += entry.n_unlike

    def discard(self) -> None:
        """Nothing that was done is of use: the folder goes when it is closed."""
        self.entries.clear()

    def _refuse_other_files(self) -> None:
        for file in self.path.iterdir():
            known = (*_OWN_FILES, *self.heads, "features")
            if file.name not in known and not file.match(".*.partial*"):
                raise InputError(
                    f"{self.path} holds {file.name}, which no prediction left there: move it away, "
                    "or choose another --out"
                )

    def _refuse_other_meaning(self, header: Mapping[str, Any]) -> None:
        if header == self.header:
            return
        stored = header.get("meaning")
        known = stored if isinstance(stored, dict) else {}
        meaning: dict[str, str] = self.header["meaning"]  # type: ignore[assignment]
        other = [word for word, value in meaning.items() if known.get(word) != value]
        raise InputError(
            f"{self.path} holds rows of an earlier start with {_listed(other)}: repeat that "
            "command to go on with it, remove the folder to start afresh, or choose another --out"
        )

    def _n_good_blocks(self, entries: Sequence[Entry]) -> int:
        return min(self._n_good_pieces(part, entries) for part in self.heads)

    def _n_good_pieces(self, part: str, entries: Sequence[Entry]) -> int:
        head = self.heads[part]
        try:
            with self.part(part).open("rb") as file:
                if file.read(len(head)) != head:
                    return 0
                for number, entry in enumerate(entries):
                    length, crc = entry.pieces.get(part, (-1, 0))
                    piece = file.read(max(0, length))
                    if len(piece) != length or zlib.crc32(piece) != crc:
                        return number
        except FileNotFoundError:
            return 0
        return len(entries)

    def _cut(self) -> None:
        """Parts and journal end after the last entry."""
        for part, head in self.heads.items():
            end = len(head) + sum(entry.pieces[part][0] for entry in self.entries)
            with self.part(part).open("ab", 0) as file:
                if not self.entries:
                    file.truncate(0)
                    _write(file, head)
                file.truncate(end)
        lines = (self.header, *map(_line, self.entries))
        write_text(self.path / _JOURNAL, "".join(json.dumps(line) + "\n" for line in lines))

    @contextmanager
    def appending(self) -> Iterator["Appender"]:
        # Unbuffered: pieces are in their files before the line that vouches for them.
        files = {part: self.part(part).open("ab", 0) for part in self.heads}
        try:
            with (self.path / _JOURNAL).open("ab", 0) as journal:
                yield Appender(self, files, journal)
        finally:
            for file in files.values():
                file.close()

    def finish(self) -> None:
        write_text(self.path / _WHOLE, "")

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Appender:
    def __init__(
        self, folder: WorkFolder, files: Mapping[str, BinaryIO], journal: BinaryIO
    ) -> None:
        self._folder, self._files, self._journal = folder, files, journal

    def append(
        self,
        pieces: Mapping[str, bytes],
        *,
        n_read: int,
        n_kept: int,
        n_unlike: int,
        skipped: Sequence[tuple[int, str]],
    ) -> None:
        sums = {part: (len(piece), zlib.crc32(piece)) for part, piece in pieces.items()}
        for part, piece in pieces.items():
            _write(self._files[part], piece)
        entry = Entry(n_read, n_kept, n_unlike, tuple(skipped), sums)
        _write(self._journal, json.dumps(_line(entry)).encode() + b"\n")
        self._folder.count(entry)


@contextmanager
def opened_work(
    path: Path, heads: Mapping[str, bytes], meaning: Mapping[str, str]
) -> Iterator[WorkFolder]:
    """One process at a time; a folder without a single row is not left behind."""
    import filelock

    path.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path / _LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InputError(
            f"another process is working in {path}: wait for it, or choose another --out"
        ) from None
    folder = WorkFolder(path, heads, meaning)
    is_ours = False
    try:
        folder.recover()
        is_ours = True
        yield folder
    finally:
        lock.release()
        if is_ours and not folder.entries:
            folder.remove()


def _entries(lines: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    for line in lines:
        try:
            yield Entry.read(line)
        except (KeyError, TypeError, ValueError, AttributeError):
            return


def _line(entry: Entry) -> dict[str, Any]:
    return {
        "n_read": entry.n_read,
        "n_kept": entry.n_kept,
        "n_unlike": entry.n_unlike,
        "skipped": entry.skipped,
        "pieces": entry.pieces,
    }


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Whole objects up to the first line that is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    lines: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(found, dict):
            break
        lines.append(found)
    return lines


def _listed(words: Sequence[str]) -> str:
    return " and ".join(words) if words else "another dcdc"


def _write(file: BinaryIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
