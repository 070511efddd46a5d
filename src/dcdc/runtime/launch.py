"""How this process was started: alone, or as one of several by torchrun."""

import os
from dataclasses import dataclass

from dcdc.errors import InputError

FORCE = "DCDC_FORCE_COLLECTIVES"
"""Set, even one process under torchrun talks to itself: for tests on a single GPU."""
TIMEOUT = "DCDC_TIMEOUT"
DEFAULT_TIMEOUT = 120.0


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
