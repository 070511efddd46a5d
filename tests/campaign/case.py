"""One bad input, and what a clean answer to it is.

Clean is: exit code 0 with the answer of the undamaged input; or exit code 2 and one line on stderr
that names the file or setting. In both cases nothing is left behind, and nothing that was there
is changed or gone.
"""

import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.process import HANG_SECONDS, Ended, call, run_verb

Work = Sequence[object] | Callable[[], object]
"""The arguments of a verb, or a call in the same place."""
REFUSED, STOPPED = 2, 130
"""Exit codes: of bad input, and after Ctrl-C."""
_OF_PARSER = ("Usage: ", "╭─ Error")
_LARGE = 4 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Case:
    name: str
    """What is wrong with the input; unique in its family."""
    prepare: Callable[[Path], Work]
    """Lays the input in an empty folder, which the work begins in."""
    names: tuple[str, ...] = ()
    """Of which a refusal must hold one."""
    answer: Callable[[Path, Ended], Any] = lambda folder, ended: None  # noqa: ARG005
    """What came out, of exit code 0."""
    wanted: Any = None
    """The answer of the undamaged input."""
    makes: tuple[str, ...] = ()
    """Patterns of what exit code 0 leaves."""
    changes: tuple[str, ...] = ()
    """Patterns of what was there and may be changed or go."""
    made_again: tuple[str, ...] = ()
    """Patterns of what can be made again: it may come, change or go, whatever the answer."""
    data_on_stdout: bool = False
    """Which is as it is, for another program."""
    codes: tuple[int, ...] = (0, 2)
    by_parser: bool = False
    """Whether the command line itself is wrong, which is told with a line of usage."""
    cache: Path | None = field(default=None, compare=False)


def fault_of(case: Case) -> str:
    """What is wrong with how the case was answered; nothing: it was answered cleanly."""
    fault = _tried(case)
    # A busy machine is no hang.
    return _tried(case) if fault.startswith("hang") else fault


def _tried(case: Case) -> str:
    with fresh_folder() as folder:
        work = case.prepare(folder)
        before = contents(folder)
        own = (lambda: run_verb(work)) if isinstance(work, list | tuple) else work
        ended = call(own, folder, cache=case.cache)
        return _fault(case, ended, folder, before, contents(folder))


def _fault(
    case: Case, ended: Ended, folder: Path, before: dict[str, Any], after: dict[str, Any]
) -> str:
    if ended.hung:
        return f"hang of {HANG_SECONDS:.0f} s"
    said = " / ".join(ended.err.strip().splitlines()[-3:])[-400:]
    if "Traceback (most recent call last)" in ended.err:
        return f"traceback: {ended.err.strip().splitlines()[-1][:300]}"
    if ended.code not in case.codes:
        return f"exit code {ended.code}: {said}"
    found = ended.err if case.data_on_stdout else ended.out + ended.err
    if _CONTROL.search(found):
        return f"raw control characters: {_CONTROL.search(found)!r}"
    errors = [line for line in ended.err.splitlines() if not line.startswith("warning: ")]
    is_usage = case.by_parser and bool(errors) and errors[0].startswith(_OF_PARSER)
    is_stopped = ended.code == STOPPED and not errors  # before there was anything to tell
    is_line = len(errors) == 1 and errors[0].startswith("dcdc: ")
    if ended.code and not (is_line or is_usage or is_stopped):
        return f"not one line: {len(errors)} lines: {said}"
    if ended.code == REFUSED and case.names and not any(name in ended.err for name in case.names):
        return f"names none of {case.names}: {said}"
    new, other = case.made_again, case.made_again
    if ended.code != REFUSED:
        new, other = new + case.makes, other + case.changes
    left = [name for name in after if name not in before and not _matches(name, new)]
    if left:
        return f"leftover: {', '.join(left[:5])}"
    lost = [name for name in before if after.get(name) != before[name]]
    lost = [name for name in lost if not _matches(name, other)]
    if lost:
        return f"changed or gone: {', '.join(lost[:5])}"
    if ended.code == 0 and case.wanted is not None:
        answer = case.answer(folder, ended)
        if answer != case.wanted:
            return f"changed answer: {_difference(answer, case.wanted)[:300]}"
    return ""


def _difference(answer: Any, wanted: Any) -> str:
    if not isinstance(answer, dict) or not isinstance(wanted, dict):
        return str(answer)
    others = {key: answer.get(key) for key in answer | wanted if answer.get(key) != wanted.get(key)}
    return "; ".join(f"{key}: {value}" for key, value in others.items())


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(Path(name).match(pattern) for pattern in patterns)


def contents(folder: Path) -> dict[str, Any]:
    """Every file below but locks, with what would show that it is another."""
    found: dict[str, Any] = {}
    for parent, folders, names in os.walk(os.fsencode(folder)):
        for name in [*folders, *names]:
            if name.endswith(b"lock"):
                continue
            path = os.path.join(parent, name)  # noqa: PTH118 - names of bytes
            own = os.lstat(path)
            relative = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
            is_file = stat.S_ISREG(own.st_mode)
            found[relative] = _sum(path, own) if is_file else stat.S_IFMT(own.st_mode)
    return found


def _sum(path: bytes, own: os.stat_result) -> tuple[int, int]:
    if own.st_size > _LARGE:
        return own.st_size, own.st_mtime_ns
    with open(path, "rb") as file:  # noqa: PTH123 - names of bytes
        return own.st_size, zlib.crc32(file.read())


class fresh_folder:  # noqa: N801 - used as a function
    """An empty folder, gone at the end, inside one that holds nothing else."""

    def __enter__(self) -> Path:
        self._outer = Path(tempfile.mkdtemp(prefix="campaign-"))
        (self._outer / "here").mkdir()
        return self._outer / "here"

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._outer, ignore_errors=True)


def numbered(cases: Iterator[Case]) -> list[Case]:
    """With names that are unique."""
    found = list(cases)
    assert len({case.name for case in found}) == len(found), "two inputs of one name"
    return found
