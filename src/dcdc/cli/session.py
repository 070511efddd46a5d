"""What verbs that carry out many runs share: options that are checked, and how they end."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dcdc.cli.faults import SIGNAL_EXIT, stop
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.reproduce.sequence import Ended

_TIME_OVER_EXIT = 3


def check_session(*, seeds: int, first_seed: int, minutes: float | None, out: Path | None) -> None:
    for name, value, least in (("seeds", seeds, 1), ("first-seed", first_seed, 0)):
        if value < least:
            raise InputError(f"--{name} is {value}: give at least {least}")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise InputError(f"--minutes is {minutes}: give a number above 0")
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file: give a folder")


def leave(ended: "Ended", n_left: int, n_runs: int) -> None:
    """Returns where all is done."""
    from dcdc.reproduce.sequence import TIME_OVER

    again = f"go on with: {shlex.join(['dcdc', *sys.argv[1:]])}"
    count = f"{n_left} of {n_runs} runs are left"
    if ended.stopped in SIGNAL_EXIT:
        stop(
            f"stopped by {ended.stopped}, state saved; {count}; {again}", SIGNAL_EXIT[ended.stopped]
        )
    if ended.faults:
        first = next(iter(ended.faults.values()))
        others = f" (and {len(ended.faults) - 1} more)" if len(ended.faults) > 1 else ""
        stop(f"{count}, {len(ended.faults)} failed: {first}{others}; {again}", 1)
    if ended.stopped == TIME_OVER:
        stop(f"--minutes are over, state saved; {count}; {again}", _TIME_OVER_EXIT)
