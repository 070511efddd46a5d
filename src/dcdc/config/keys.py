"""The names of settings: `section.key`, or a key alone where it belongs to no section."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from dcdc.config.phase_settings import PHASES, kind_of, numbered
from dcdc.config.ranges import Range, ranges_of
from dcdc.config.renamed import GONE, NEW_NAMES
from dcdc.config.sections import AugmentConfig, DataConfig, NetworkConfig, TrainConfig
from dcdc.errors import InputError
from dcdc.nearest_name import closest

_SECTIONS: dict[str, type] = {
    "data": DataConfig,
    "network": NetworkConfig,
    "augment": AugmentConfig,
    "train": TrainConfig,
}
OF_MAIN_PHASE: dict[str, Any] = {"epochs": int, "batch_size": int | None}
"""Keys that every phase has. Alone they are the main phase's."""
_TOP: dict[str, Any] = {"n_clusters": int | None, "phases": tuple[str, ...], **OF_MAIN_PHASE}
HEADS = "heads"
"""The phase that trains the heads with the network: most recipes have it."""


def flatten(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The values of sections and phases by `section.key`, and those of no section by their key."""
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            values |= {f"{key}.{name}": inner for name, inner in value.items()}
        elif key == "phases" and is_tables(value):
            names = numbered(list(map(kind_of_table, value)))
            values["phases"] = names
            for name, table in zip(names, value, strict=True):
                inside = {inner: found for inner, found in table.items() if inner != "kind"}
                values |= {f"{name}.{inner}": found for inner, found in inside.items()}
        else:
            values[key] = value
    return values


def is_tables(value: Any) -> bool:
    """Whether phases are given whole, each as a table with its kind, and not by name."""
    return isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value)


def kind_of_table(table: Any) -> str:
    """Of a phase that is given whole."""
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if not isinstance(kind, str):
        raise InputError(f"phases: {table!r} is no table with a kind")
    return kind


def type_of_key(key: str) -> Any:
    """The type hint of a setting."""
    section, _, name = key.rpartition(".")
    hints = _types_of_section(section)
    if name in hints:
        return hints[name]
    if key in NEW_NAMES:
        raise InputError(f"{key!r} is called {NEW_NAMES[key]!r} now")
    if key in GONE:
        raise InputError(f"{key!r} is a setting of 0.1.0 that is no more")
    known = _all_keys()
    # People type the last part from memory, or a name of before: look for these too.
    by_last_part = next((full for full in known if full.rpartition(".")[2] == key), None)
    meant = by_last_part or closest(key, (*known, *NEW_NAMES))
    hint = "" if meant is None else f"; did you mean {NEW_NAMES.get(meant, meant)!r}?"
    raise InputError(f"unknown config key {key!r}{hint}")


def range_of_key(key: str) -> Range | None:
    """Of a setting that `type_of_key` knows."""
    section, _, name = key.rpartition(".")
    settings = _SECTIONS.get(section) or PHASES.get(kind_of(section))
    return ranges_of(settings).get(name)


def _types_of_section(section: str) -> dict[str, Any]:
    if not section:
        return _TOP
    if section in _SECTIONS:
        return typing.get_type_hints(_SECTIONS[section])
    if kind_of(section) in PHASES.names():
        return types_of_phase(PHASES.get(kind_of(section)))
    return {}


def types_of_phase(settings: type) -> dict[str, Any]:
    hints = typing.get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def _all_keys() -> list[str]:
    keys = list(_TOP)
    # Most recipes have heads, so theirs come first where phases share a name.
    for section in dict.fromkeys((*_SECTIONS, HEADS, *PHASES.names())):
        keys += [f"{section}.{name}" for name in _types_of_section(section)]
    return keys
