"""Sources are regular files: a pipe or a device in the place of one would be waited for."""

from pathlib import Path

from dcdc.errors import InputError
from dcdc.stored.reading import opened_regular
from dcdc.stored.schema import Unfit


def require_regular(path: Path) -> Path:
    """`path` itself, where it is a file or a link to one; asked before a library opens it."""
    try:
        opened_regular(path).close()
    except Unfit as error:
        raise InputError(f"{path} {error}: give a regular file") from None
    return path
