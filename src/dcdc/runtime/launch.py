"""How this process was started, alone or as one of several by torchrun, and how those meet.

They meet in torchrun's own store, in a part of it for each start: torchrun keeps one store for all
starts, and one after a failure would read the addresses of processes that are gone. There they also
settle which of them tells of a fault, since a fault of one soon is a fault of all.
"""

import os
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dcdc.errors import InputError
from dcdc.runtime.owners import running_kernel

FORCE = "DCDC_FORCE_COLLECTIVES"
"""Set, even one process under torchrun talks to itself: for tests on a single GPU."""
TIMEOUT = "DCDC_TIMEOUT"
DEFAULT_TIMEOUT = 120.0
_SECONDS_TO_ASK = 5
_SECONDS_OF_A_CLAIM = 30
"""After that it is of an earlier start of the same job."""
_SECONDS_FOR_THE_FIRST = 1
"""What is wrong for all is best told by the first."""


@dataclass(frozen=True)
class Launch:
    """What torchrun says in the environment; as it is, one process alone."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Among the processes of this host..."""
    local_size: int = 1
    """...and how many they are."""
    restarts: int = 0
    restarts_left: int = 0
    job: str | None = None
    """The same for every start of a job, where torchrun was given or made a name for it."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds within which the others answer."""
    force: bool = False

    @property
    def is_several(self) -> bool:
        return self.size > 1 or self.force


def read_launch() -> Launch:
    """From torchrun's own variables: needs no torch."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Launch()
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    restarts = _whole("TORCHELASTIC_RESTART_COUNT")
    return Launch(
        rank=_whole("RANK"),
        size=_whole("WORLD_SIZE"),
        local_rank=_whole("LOCAL_RANK"),
        local_size=max(1, _whole("LOCAL_WORLD_SIZE")),
        restarts=restarts,
        restarts_left=max(0, _whole("TORCHELASTIC_MAX_RESTARTS") - restarts),
        job=None if job in (None, "", "none") else job,
        timeout=_timeout(),
        force=os.environ.get(FORCE, "") not in ("", "0"),
    )


def job_of(launch: Launch) -> str | None:
    """The same for every start by one torchrun: the name it was given, or else its process."""
    if launch.job is not None or "RANK" not in os.environ:
        return launch.job
    return f"unnamed, by process {os.getppid()} of {running_kernel()}"


def _whole(variable: str) -> int:
    text = os.environ.get(variable, "0")
    if not text.isdecimal():
        raise InputError(f"{variable} is {text!r}, not a whole number: start dcdc by torchrun")
    return int(text)


def _timeout() -> float:
    text = os.environ.get(TIMEOUT) or str(DEFAULT_TIMEOUT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < 1e6:
        raise InputError(f"{TIMEOUT} is {text!r}: give seconds, 1 or more")
    return seconds


def meet(launch: Launch, seconds: float, *, may_host: bool = True) -> Any:
    """Torch's store, or its RuntimeError where nobody answers.

    Of processes started without torchrun the first hosts it, if it may.
    """
    # Late: a wrong flag should not have to wait for torch where it is one process's alone.
    from torch import distributed

    known: Any = distributed  # its stubs do not know the stores
    by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = known.TCPStore(
        os.environ.get("MASTER_ADDR", "127.0.0.1"),
        int(os.environ.get("MASTER_PORT", "29500")),
        is_master=may_host and not by_torchrun and launch.rank == 0,
        wait_for_workers=False,
        timeout=timedelta(seconds=seconds),
    )
    return known.PrefixStore(f"dcdc/{launch.job}/{launch.restarts}/{launch.size}", store)


def may_tell(launch: Launch) -> bool:
    """For the first that asks; where nobody can be asked, for the first process of each host."""
    if launch.size == 1:
        return True
    if launch.rank:
        time.sleep(_SECONDS_FOR_THE_FIRST)
    mine = f"{time.time()} {launch.rank}"
    try:
        store = meet(launch, _SECONDS_TO_ASK, may_host=False)
        held: str = store.compare_set("told", "", mine).decode()
        if held != mine and time.time() - float(held.split()[0]) > _SECONDS_OF_A_CLAIM:
            held = store.compare_set("told", held, mine).decode()
    except (RuntimeError, ValueError):  # torch's own are RuntimeErrors
        return launch.local_rank == 0
    return held == mine
