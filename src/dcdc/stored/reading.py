"""JSON and JSON lines, read from regular files alone, within bounds, by a schema.

What is wrong is told in one line: which file, which key, what it should be, and what to do. A check
sum within reveals what is well-formed and altered; files of older versions have none.
"""

import csv
import hashlib
import io
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dcdc.errors import InputError
from dcdc.stored.schema import LARGEST, Schema, Unfit

CHECKSUM = "checksum"
MIB = 2**20
_DEEPEST = 32
_MOST_DIGITS = 100
# Windows waits for no pipe and has neither of the first two, but would change ends of lines.
_HOW = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class DamagedFileError(InputError):
    """Of a file that lies where one of ours should, and cannot be taken for it."""


def opened_regular(path: Path, most_bytes: int = LARGEST) -> BinaryIO:
    """For reading; Unfit for whatever is no regular file, without waiting for its other end."""
    descriptor = os.open(path, os.O_RDONLY | _HOW)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise Unfit("", f"is {_kind(about.st_mode)}, not a file")
        if about.st_size > most_bytes:
            raise Unfit("", f"has {about.st_size:,} bytes, at most {most_bytes:,} are read")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(path: Path) -> Path:
    """`path` itself, where it is a file or a link to one; asked before a library opens a source: a
    pipe or a device in its place would be waited for."""
    try:
        opened_regular(path).close()
    except Unfit as error:
        raise InputError(f"{path} {error}: give a regular file") from None
    return path


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def file_digest(path: Path, kind: str = "sha256") -> str:
    """Of all of a file, with flat memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def read_bytes(path: Path, most_bytes: int) -> bytes:
    with opened_regular(path, most_bytes) as file:
        content = file.read(most_bytes + 1)  # the file may have grown
    if len(content) > most_bytes:
        raise Unfit("", f"has more than {most_bytes:,} bytes")
    return content


def parse_json(content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unfit("", "is not UTF-8 text") from None
    if text.startswith("\ufeff"):
        raise Unfit("", "begins with a byte order mark: save it as plain UTF-8")
    try:
        found = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise Unfit("", f"is nested more than {_DEEPEST} deep") from None
    except ValueError as error:
        raise Unfit("", f"is no JSON ({error})") from None
    _require_shallow(found, _DEEPEST)
    return found


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _require_shallow(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if left == 0:
        raise Unfit("", f"is nested more than {_DEEPEST} deep")
    for inner in value.values() if isinstance(value, dict) else value:
        _require_shallow(inner, left - 1)


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """With a check sum of all the rest."""
    return {**content, CHECKSUM: _checksum(content)}


def unsealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Without its check sum, where it has one; Unfit where that is of something else."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    if CHECKSUM in content and content[CHECKSUM] != _checksum(rest):
        raise Unfit("", f"was altered: its {CHECKSUM} is of other content")
    return rest


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class StoredFile:
    """A file that is read back. Files of one kind differ in how they are read."""

    name: str
    schema: Any
    remedy: str
    """What to do with a damaged one."""
    most_bytes: int = 16 * MIB

    def damaged(self, path: Path, error: Exception) -> DamagedFileError:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        problem = " ".join(said.split()) or type(error).__name__
        if isinstance(error, Unfit):
            told = f"{path}{':' if error.where else ''} {problem}"
        elif isinstance(error, OSError):
            told = f"cannot read {path}: {problem}"
        else:
            told = f"{path} is damaged ({problem})"
        return DamagedFileError(told, remedy=self.remedy)


@dataclass(frozen=True)
class StoredJson(StoredFile):
    """One object."""

    schema: Schema
    needs_checksum: bool = False
    """Of what can be made again: one without is of an older version, and made again."""
    without_checksum: tuple[str, ...] = ()
    """All words that those of older versions may have: with another, it is the check sum's own
    word that is damaged."""

    def read(self, path: Path) -> dict[str, Any]:
        try:
            return self.checked(parse_json(read_bytes(path, self.most_bytes)))
        except (OSError, Unfit) as error:
            raise self.damaged(path, error) from None

    def checked(self, content: Any) -> dict[str, Any]:
        """Raises Unfit."""
        if not isinstance(content, dict):
            raise Unfit("", "is no JSON object")
        others = content.keys() - set(self.without_checksum) if self.without_checksum else ()
        if CHECKSUM not in content and (self.needs_checksum or others):
            raise Unfit("", f"has no {CHECKSUM}")
        rest = unsealed(content)
        self.schema.check(rest, "")
        return rest

    def text(self, content: Mapping[str, Any]) -> str:
        """What is written, in a line."""
        return json.dumps(sealed(content)) + "\n"


@dataclass(frozen=True)
class StoredLines(StoredJson):
    """An object a line. A kill may cut the last line short, which is then as if not written."""

    most_bytes: int = 1024 * MIB

    def lines(self, path: Path) -> list[dict[str, Any]]:
        """All whole lines; a damaged one is refused with its number."""
        try:
            content = read_bytes(path, self.most_bytes)
            return list(self._checked_lines(content))
        except (OSError, Unfit) as error:
            raise self.damaged(path, error) from None

    def headed_lines(
        self, path: Path, header: StoredJson
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The first line, which is of a kind of its own, and those after it up to the first that is
        damaged; nothing of a file that cannot be read."""
        found: list[dict[str, Any]] = []
        try:
            first, _, rest = read_bytes(path, self.most_bytes).partition(b"\n")
            head = header.checked(parse_json(first))
        except (OSError, Unfit):
            return None, found
        with suppress(Unfit):
            found.extend(self._checked_lines(rest))
        return head, found

    def _checked_lines(self, content: bytes) -> Iterator[dict[str, Any]]:
        lines = content.split(b"\n")
        if _is_cut_short(lines[-1]):
            lines.pop()
        for number, line in enumerate(lines, start=1):
            try:
                yield self.checked(parse_json(line))
            except Unfit as error:
                raise Unfit(f"line {number}", str(error)) from None


@dataclass(frozen=True)
class StoredCsv(StoredFile):
    """Rows of texts; its schema names the columns."""

    schema: tuple[str, ...]
    most_bytes: int = 1024 * MIB

    def read(self, path: Path) -> list[dict[str, str]]:
        try:
            text = read_bytes(path, self.most_bytes).decode("utf-8")
            head, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
            if tuple(head) != self.schema:
                raise Unfit("", f"has other columns than {', '.join(self.schema)}")
            return [dict(zip(self.schema, row, strict=True)) for row in rows]
        except (OSError, ValueError, csv.Error, Unfit) as error:
            raise self.damaged(path, error) from None


def _is_cut_short(tail: bytes) -> bool:
    """Whether what follows the last end of a line is the beginning of an object and no more: a
    whole one with something behind it is a line whose end was altered."""
    if tail and not (tail.startswith(b"{") and tail.isascii() and tail.decode().isprintable()):
        return False
    try:
        json.JSONDecoder().raw_decode(tail.decode())
    except (ValueError, RecursionError):
        return True
    return False
