"""Where the processes of a launch find each other: torchrun's own store, a part for each start.

Without a part of its own, a start after a failure would read the addresses of processes that are
gone: torchrun keeps one store for all of them.
"""

import os
from datetime import timedelta
from typing import Any

from dcdc.runtime.launch import Launch


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
