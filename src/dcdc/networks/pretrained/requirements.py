"""Packages that extras bring, imported when a backbone of theirs is asked for."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dcdc.errors import InputError, first_line


def required(module: str, *, of: str, extra: str) -> Any:
    """The module; `of` is what needs it, `extra` brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise InputError(
            f"{of} needs the package {missing.partition('.')[0]}",
            remedy=f"pip install 'dcdc[{extra}]'",
        ) from None
    except Exception as error:  # a package that is broken here: a build for another torch, say
        raise InputError(
            f"{of} needs the package {module}, which cannot be imported: {first_line(error)}"
        ) from error


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
