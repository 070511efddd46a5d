"""Which of several processes tells of a fault: a fault of one soon is a fault of all."""

import time

from dcdc.runtime.launch import Launch
from dcdc.runtime.meeting_point import meet

_SECONDS_TO_ASK = 5
_SECONDS_OF_A_CLAIM = 30
"""After that it is of an earlier start of the same job."""
_SECONDS_FOR_THE_FIRST = 1
"""What is wrong for all is best told by the first."""


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
