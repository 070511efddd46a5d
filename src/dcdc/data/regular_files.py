"""Sources are regular files: a pipe or a device in the place of one would be waited for."""

import stat
from pathlib import Path

from dcdc.errors import InputError


def require_regular(path: Path) -> Path:
    """`path` itself, where it is a file or a link to one; asked before anything opens it."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path} is no regular file (a pipe, a device or a folder): give a file")
    return path
