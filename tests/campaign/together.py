"""Two fits in one folder, and readers beside a fit, round after round."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from campaign import answers
from campaign.case import fresh_folder
from campaign.ground import FLAGS, ground
from campaign.mutations import drawing
from campaign.process import Child, Ended, call, run_verb

N_ROUNDS = 200
_SECONDS = 60.0


@dataclass(frozen=True)
class Round:
    what: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.what}, round {self.number}"


def two_fits() -> Iterator[Round]:
    return (Round("two fits in one folder", number) for number in range(N_ROUNDS))


def readers() -> Iterator[Round]:
    return (Round("readers beside a fit", number) for number in range(N_ROUNDS))


def fault_of(this: Round) -> str:
    with fresh_folder() as folder:
        judge = _two_fits if this.what.startswith("two") else _readers
        return judge(folder, drawing(this.name).uniform(0, 0.3))


def _two_fits(folder: Path, wait: float) -> str:
    """The second begins a moment after the first: one of them is refused, one ends as alone."""
    first = _fit(folder)
    time.sleep(wait)
    second = _fit(folder)
    ends = [first.ended(_SECONDS), second.ended(_SECONDS)]
    codes = sorted(ended.code for ended in ends)
    if codes != [0, 2]:
        return f"exit codes {codes}: {[ended.err[-300:] for ended in ends]}"
    refused = next(ended for ended in ends if ended.code == 2)
    return _not_one_line(refused) or _other_answer(folder)


def _readers(folder: Path, wait: float) -> str:
    """They read what is there, or are told in a line that it is not there yet."""
    fit, faults = _fit(folder), []
    time.sleep(wait)
    made, number = ground(), 0
    verbs: list[list[object]] = [
        ["evaluate", "run", "--quiet"],
        ["predict", "run", made.vectors, "--device", "cpu", "--quiet"],
    ]
    while fit.is_running():
        verb = verbs[number % len(verbs)]
        read = call(partial(run_verb, verb), folder, cache=made.cache, seconds=_SECONDS)
        number += 1
        if read.code not in (0, 2):
            faults.append(f"{verb[0]}: exit code {read.code}: {read.err[-300:]}")
        elif read.code == 2:
            faults.append(_not_one_line(read))
    ended = fit.ended(_SECONDS)
    if ended.code != 0:
        return f"the fit: exit code {ended.code}: {ended.err[-300:]}"
    return next(filter(None, faults), "") or _other_answer(folder)


def _fit(folder: Path) -> Child:
    made = ground()
    arguments = ["fit", made.vectors, "--run", "run", *FLAGS, "--epochs", "1"]
    return Child(partial(run_verb, arguments), folder, cache=made.cache)


def _not_one_line(ended: Ended) -> str:
    n_lines = len(ended.err.splitlines())
    return "" if n_lines == 1 else f"refused in {n_lines} lines: {ended.err[-300:]}"


@lru_cache
def _alone() -> Any:
    with fresh_folder() as folder:
        ended = _fit(folder).ended(_SECONDS)
        assert ended.code == 0, ended.err
        return _answer(folder)


def _answer(folder: Path) -> Any:
    found = answers.of_run(folder / "run")
    found["files"] = [name for name in found["files"] if not name.endswith("lock")]
    return found


def _other_answer(folder: Path) -> str:
    return "" if _answer(folder) == _alone() else "changed answer or leftover"
