"""Rows of a source, appended block by block to files that grow in step: a kill loses one block.

`journal` lies beside the files. Its first line says what they are made of. Then there is a line
per block: counts of rows, the rows that were left out, and the length and check sum of its piece
of every file. What no line vouches for is cut off and made again.
"""

import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dcdc.runtime.atomic_files import write_text
from dcdc.stored.files import JOURNAL as JOURNAL_LINES
from dcdc.stored.files import JOURNAL_HEADER
from dcdc.stored.reading import opened_regular
from dcdc.stored.schema import Unfit

JOURNAL = JOURNAL_LINES.name
Skips = tuple[tuple[int, str], ...]
"""Rows of the source that were left out, and why."""


@dataclass(frozen=True)
class Entry:
    """A line of the journal."""

    counts: Mapping[str, int]
    """`n_read` rows of the source, `n_kept` rows in the files, and what else the writer counts."""
    skipped: Skips
    pieces: Mapping[str, tuple[int, int]]
    """By file: length and check sum."""

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> "Entry":
        counts = {name: count for name, count in line.items() if name[:2] == "n_"}
        skipped = tuple((row, why) for row, why in line["skipped"])
        pieces = {name: (n, crc) for name, (n, crc) in line["pieces"].items()}
        return cls(counts, skipped, pieces)

    def line(self) -> str:
        content = {**self.counts, "skipped": self.skipped, "pieces": self.pieces}
        return JOURNAL_LINES.text(content)


class JournaledFolder:
    """Only one process may append at a time; the caller holds a lock."""

    def __init__(self, path: Path, header: Mapping[str, Any], heads: Mapping[str, bytes]) -> None:
        """`header`: the journal's first line. `heads`: the files, and what each begins with."""
        self.path, self.header, self.heads = path, header, heads
        self.journal = path / JOURNAL
        self.entries: list[Entry] = []
        self.totals: Counter[str] = Counter()

    @property
    def n_read(self) -> int:
        return self.totals["n_read"]

    @property
    def n_kept(self) -> int:
        return self.totals["n_kept"]

    @property
    def skipped(self) -> Skips:
        return tuple(skipped for entry in self.entries for skipped in entry.skipped)

    def load(self) -> Mapping[str, Any] | None:
        """The header that lies there; its entries become ours if it is our header."""
        header, entries = JOURNAL_LINES.headed_lines(self.journal, JOURNAL_HEADER)
        if header == self.header:
            for entry in map(Entry.read, entries):
                n_read = self.n_read + entry.counts["n_read"]
                if any(row >= n_read for row, _ in entry.skipped):
                    break
                self.count(entry)
        return header

    def count(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.totals.update(entry.counts)

    def keep(self, n_blocks: int) -> None:
        """Forgets the later ones; the files are cut when blocks are appended."""
        kept, self.entries, self.totals = self.entries[:n_blocks], [], Counter()
        for entry in kept:
            self.count(entry)

    def n_good_blocks(self) -> int:
        """Reads every check sum; the number of blocks before the first bad one."""
        return min(self.n_good_pieces(name) for name in self.heads)

    def n_good_pieces(self, name: str) -> int:
        head = self.heads[name]
        try:
            with opened_regular(self.path / name) as file:
                if file.read(len(head)) != head:
                    return 0
                n_bytes = os.fstat(file.fileno()).st_size
                for number, entry in enumerate(self.entries):
                    length, crc = entry.pieces.get(name, (-1, 0))
                    piece = file.read(length) if 0 <= length <= n_bytes else b""
                    if len(piece) != length or zlib.crc32(piece) != crc:
                        return number
        except (FileNotFoundError, Unfit):
            return 0
        return len(self.entries)

    @contextmanager
    def appending(self) -> Iterator["Appender"]:
        """Cuts the files after the last entry; what follows it is on the disk at the end."""
        with ExitStack() as stack:
            for name in self.heads:
                _clear_the_way(self.path / name)
            # Unbuffered: pieces are in their files before the line that vouches for them.
            files = {
                name: stack.enter_context((self.path / name).open("ab", 0)) for name in self.heads
            }
            for name, file in files.items():
                self._cut(name, file)
            lines = [JOURNAL_HEADER.text(self.header), *(entry.line() for entry in self.entries)]
            write_text(self.journal, "".join(lines))
            yield Appender(self, files, stack.enter_context(self.journal.open("ab", 0)))
            for file in files.values():
                os.fsync(file.fileno())

    def _cut(self, name: str, file: BinaryIO) -> None:
        head = self.heads[name]
        if not self.entries:
            file.truncate(0)
            _write(file, head)
        file.truncate(len(head) + sum(entry.pieces[name][0] for entry in self.entries))


class Appender:
    def __init__(
        self, folder: JournaledFolder, files: Mapping[str, BinaryIO], journal: BinaryIO
    ) -> None:
        self._folder, self._files, self._journal = folder, files, journal

    def append(
        self, pieces: Mapping[str, bytes], *, skipped: Sequence[tuple[int, str]], **counts: int
    ) -> None:
        for name, piece in pieces.items():
            _write(self._files[name], piece)
        sums = {name: (len(piece), zlib.crc32(piece)) for name, piece in pieces.items()}
        entry = Entry(counts, tuple(skipped), sums)
        _write(self._journal, entry.line().encode())
        self._folder.count(entry)


def _clear_the_way(path: Path) -> None:
    """A pipe in the place of a file would be waited for."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.unlink()


def _write(file: BinaryIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
