"""Settings of methods as typed, `METHOD.KEY=VALUE`, read and checked by their signatures."""

from collections.abc import Iterable, Sequence
from typing import Any

from dcdc.config import RunConfig, with_settings
from dcdc.errors import InputError
from dcdc.methods import Method, find_method
from dcdc.nearest_name import nearest
from dcdc.typed_values import coerce_value, parse_value

ENGINE_CHANGES = "changes"
"""The argument by which a method that is a run of the engine takes `section.key=value`."""
_OWN_OPTIONS = {
    "train.seed": "--seeds and --first-seed",
    "train.device": "--device",
    "data.source": "DATA",
    "data.size": "--size",
    "data.target": "--target",
    "data.on_bad": "--on-bad",
}


def read_settings(texts: Iterable[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every setting of every method."""
    found = {method: find_method(method).settings() for method in methods}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        method, dot, key = name.partition(".")
        if not equals or not dot:
            raise InputError(f"--set {text!r} is not METHOD.KEY=VALUE, such as k-means.n_init=3")
        entry = find_method(method)
        if method not in found:
            raise InputError(
                f"--set {text} is for {method}, which is not compared: name it in --methods, too"
            )
        known = found[method]
        if "." in key and ENGINE_CHANGES in known:
            known[ENGINE_CHANGES] = (*known[ENGINE_CHANGES], _engine_setting(key, value))
        else:
            known[key] = _value(entry, key, parse_value(value), known)
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
        raise InputError(f"--set {key} does not go here: use {_OWN_OPTIONS[key]}")
    setting = f"{key}={value}"
    with_settings(RunConfig(), [setting])
    return setting
