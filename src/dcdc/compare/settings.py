"""What a method takes beside images, clusters and a seed: read from its signature, and checked."""

import inspect
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from dcdc.config import RunConfig, with_settings
from dcdc.errors import InputError
from dcdc.methods import find_method
from dcdc.nearest_name import nearest
from dcdc.typed_values import coerce_value, parse_value

ENGINE_CHANGES = "changes"
"""The argument by which a method that is a run of the engine takes `section.key=value`."""
_FACE = ("image_set", "n_clusters", "seed", "device", "observer", "folder")
_OWN_OPTIONS = {
    "train.seed": "--seeds and --first-seed",
    "train.device": "--device",
    "data.source": "DATA",
    "data.size": "--size",
    "data.target": "--target",
    "data.on_bad": "--on-bad",
}


def defaults_of(method: str) -> dict[str, Any]:
    parameters = inspect.signature(find_method(method).load()).parameters
    return {name: each.default for name, each in parameters.items() if name not in _FACE}


def read_settings(texts: Iterable[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`method.key=value` as typed -> every setting of every method."""
    found = {method: defaults_of(method) for method in methods}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        method, dot, key = name.partition(".")
        if not equals or not dot:
            raise InputError(f"--set {text!r} is not METHOD.KEY=VALUE, such as k-means.n_init=3")
        find_method(method)
        if method not in found:
            raise InputError(
                f"--set {text} is for {method}, which is not compared: name it in --methods, too"
            )
        known = found[method]
        if "." in key and ENGINE_CHANGES in known:
            known[ENGINE_CHANGES] = (*known[ENGINE_CHANGES], _engine_setting(key, value))
        else:
            known[key] = _value(method, key, parse_value(value), known)
    return found


def _value(method: str, key: str, value: Any, known: dict[str, Any]) -> Any:
    if key not in known:
        takes = ", ".join(known) or "nothing"
        raise InputError(f"{method} has no setting {key!r}{nearest(key, known)} It takes {takes}")
    kind = typing.get_type_hints(find_method(method).load())[key]
    return coerce_value(f"{method}.{key}", value, kind)


def _engine_setting(key: str, value: str) -> str:
    if key in _OWN_OPTIONS:
        raise InputError(f"--set {key} does not go here: use {_OWN_OPTIONS[key]}")
    setting = f"{key}={value}"
    with_settings(RunConfig(), [setting])
    return setting
