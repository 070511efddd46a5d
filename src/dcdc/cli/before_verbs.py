"""What may stand before any verb: `--version`, what a report of a fault should say, and plugins."""

import importlib
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

from dcdc.errors import InputError
from dcdc.runtime.environment import own_commit, own_version, version_of


def _tell(asked: bool) -> None:
    if asked:
        commit = own_commit()
        own = f"dcdc {own_version()}" + (f" ({commit})" if commit else "")
        print(f"{own}, torch {version_of('torch')}, Python {platform.python_version()}")
        raise typer.Exit


def before_any_verb(
    _: Annotated[
        bool, typer.Option("--version", callback=_tell, is_eager=True, help="Say which dcdc it is.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Python file that extends dcdc (docs/extend.md); repeatable."
        ),
    ] = None,
) -> None:
    for name in plugin or ():
        _import_plugin(name)


def _import_plugin(name: str) -> None:
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
