"""The names of settings: `section.key`, or a key alone where it belongs to no section."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from dcdc.errors import InputError
from dcdc.nearest_name import nearest


def flatten(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The values of sections by `section.key`, and those of no section by their key."""
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            values |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            values[key] = value
    return values


def type_of_key(key: str, config: type) -> Any:
    """The type hint of `key` in a dataclass, or in one of the dataclasses that it is made of."""
    known = _types(config)
    if key not in known:
        # People type the last part from memory: look for that too.
        by_last_part = [full for full in known if full.rpartition(".")[2] == key]
        hint = f"; did you mean {by_last_part[0]!r}?" if by_last_part else nearest(key, known)
        raise InputError(f"unknown config key {key!r}{hint}")
    return known[key]


def _types(config: type) -> dict[str, Any]:
    types_by_key: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(config).items():
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            types_by_key |= {f"{name}.{inner}": hint for inner, hint in hints.items()}
        else:
            types_by_key[name] = kind
    return types_by_key
