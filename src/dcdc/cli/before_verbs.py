"""What may stand before any verb: `--version`, what a report of a fault should say, and plugins."""

import platform
from typing import Annotated

import typer

from dcdc.cli.plugins import import_plugin
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
        import_plugin(name)
