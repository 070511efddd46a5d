"""Two folders change places in one step, where the system can do that."""

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_HERE = -100  # Linux: paths are relative to the current folder
_SWAP = 2


@cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    """0 where it was done."""
    platform = os.uname().sysname if hasattr(os, "uname") else ""
    library: Any = ctypes.CDLL(None) if platform in ("Linux", "Darwin") else None
    if platform == "Linux" and hasattr(library, "renameat2"):
        return lambda one, other: int(library.renameat2(_HERE, one, _HERE, other, _SWAP))
    if platform == "Darwin" and hasattr(library, "renamex_np"):
        return lambda one, other: int(library.renamex_np(one, other, _SWAP))
    return None


def exchange(one: Path, other: Path) -> bool:
    """Whether it was done: file systems of a network, say, cannot."""
    call = _system_call()
    if call is None:
        return False
    sys.audit("os.rename", str(one), str(other), -1, -1)
    return call(os.fsencode(one), os.fsencode(other)) == 0
