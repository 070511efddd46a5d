"""Settings of methods as typed, `METHOD.KEY=VALUE`, read and checked by their signatures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dcdc.config import parse_settings
from dcdc.config.typed_values import coerce_value, parse_value
from dcdc.errors import InputError
from dcdc.methods import Method, find_method
from dcdc.nearest_name import nearest
from dcdc.prepare.overrides import Overrides

ENGINE_CHANGES = "changes"
"""The argument by which a method that is a run of the engine takes `section.key=value`."""
_OWN_OPTIONS = {
    key: f"{{{key}}}"
    for key in ("train.device", "data.source", "data.size", "data.target", "data.on_bad")
} | {"train.seed": "{seeds} and {first_seed}"}


def read_settings(texts: Iterable[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every setting of every method."""
    found = {method: find_method(method).settings() for method in methods}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        method, dot, key = name.partition(".")
        if not equals or not dot:
            raise InputError(
                "is not METHOD.KEY=VALUE, such as k-means.n_init=3", parameter="set", value=text
            )
        entry = find_method(method)
        if method not in found:
            raise InputError(
                f"is for {method}, which is not compared",
                parameter="set",
                value=text,
                remedy="name it in {methods}, too",
            )
        known = found[method]
        if ENGINE_CHANGES in known and ("." in key or key == "phases"):
            known[ENGINE_CHANGES] = (*known[ENGINE_CHANGES], _engine_setting(key, value))
        else:
            known[key] = _value(entry, key, parse_value(value), known)
    for method, known in found.items():
        _check_changes(method, known)
    return found


def _value(method: Method, key: str, value: Any, known: dict[str, Any]) -> Any:
    if key not in known:
        takes = ", ".join(known) or "nothing"
        raise InputError(
            f"{method.name} has no setting {key!r}{nearest(key, known)} It takes {takes}"
        )
    return coerce_value(f"{method.name}.{key}", value, method.setting_types()[key])


def _engine_setting(key: str, value: str) -> str:
    if key in _OWN_OPTIONS:
        raise InputError(f"{key} is no setting of one method", remedy=f"use {_OWN_OPTIONS[key]}")
    return f"{key}={value}"


def _check_changes(method: str, known: Mapping[str, Any]) -> None:
    """Refuses names and values that no recipe can bear, before a process is started."""
    changes, recipe = known.get(ENGINE_CHANGES), known.get("recipe")
    if changes is not None and (changes or recipe):
        try:
            Overrides(parse_settings(changes), recipe).alone()
        except InputError as error:
            raise error.within(method) from None
