"""`dcdc --plugin`: files that add backbones, losses, phases, sources, methods or panels."""

import importlib
import sys
from pathlib import Path

from dcdc.errors import InputError


def import_plugin(name: str) -> None:
    """A file, whose folder other processes can import it from too, or a module's name."""
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(
                f"plugin {name} does not exist: give a Python file, or a module's name"
            )
        folder = str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        name = path.stem
    try:
        importlib.import_module(name)
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"plugin {name} cannot be imported ({reason}): mend it first") from error
