"""Run folders of 0.1.0: what their settings and weights are called now.

There a config had three phases with sections of their own (`instance`, `train`, `self_label`), and
the losses of the heads in `loss`. A backbone was called trunk.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from dcdc.errors import InputError

Value = TypeVar("Value")

_MOVED: dict[str, tuple[str, ...]] = {
    "instance -> contrast": (
        *("epochs", "batch_size", "temperature", "projection", "learning_rate", "schedule"),
    ),
    "loss -> heads": ("temperature", "sample_weight", "class_weight", "balance_weight"),
    "train -> heads": (
        *("epochs", "batch_size", "n_repeats", "over_clustering_first", "neighbours"),
        *("learning_rate", "schedule"),
    ),
}
NEW_NAMES: dict[str, str] = {
    f"{old}.{key}": f"{new}.{key}"
    for (old, new), keys in ((sections.split(" -> "), keys) for sections, keys in _MOVED.items())
    for key in keys
} | {
    "network.trunk": "network.backbone",
    "loss.kind": "heads.loss",
    "train.heads": "heads.order",
    "train.head_start": "heads.initialisation",
    "instance.kind": "phases",
    "instance.momentum": "byol.momentum",
}
GONE: dict[str, Any] = {
    "instance.copies": 2,
    "instance.warmup_epochs": 0.0,
    "train.warmup_epochs": 0.0,
    "loss.spare_siblings": False,
    "train.passes": "auto",
    "augment.crop_ratio": [3 / 4, 4 / 3],
}
"""Settings that 0.2 does without, and the only value that it can still go by."""


def renamed(key: str) -> str:
    return NEW_NAMES.get(key, key)


def without_gone(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nested as in its file; refuses a value that this version cannot go by."""
    kept = {key: dict(part) if isinstance(part, Mapping) else part for key, part in config.items()}
    for key, usual in GONE.items():
        section, _, name = key.partition(".")
        value = kept[section].pop(name, usual) if section in kept else usual
        if value != usual:
            raise InputError(
                f"{key} = {value!r}: a setting of 0.1.0 that is no more; read it by dcdc 0.1"
            )
    return kept


def upgraded(config: Mapping[str, Any]) -> dict[str, Any]:
    """A 0.1.0 config, nested as in its file, as this version has it."""
    config = without_gone(config)
    values = {
        f"{section}.{name}": value
        for section, inside in config.items()
        if isinstance(inside, Mapping)
        for name, value in inside.items()
    }
    predicts = values.pop("instance.kind", "contrast") == "prediction"
    features = "byol" if predicts else "contrast"
    if predicts:
        values.pop("instance.temperature", None)
    found: dict[str, Any] = {k: v for k, v in config.items() if not isinstance(v, Mapping)}
    tables: dict[str, dict[str, Any]] = {}
    for old, value in values.items():
        section, _, name = renamed(old).partition(".")
        section = features if section in ("contrast", "byol") else section
        if old == "instance.momentum" and not predicts:
            continue
        home = tables if section in (features, "heads", "self_label") else found
        home.setdefault(section, {})[name] = value
    found["phases"] = [
        {"kind": kind, **tables.get(kind, {})}
        for kind in (features, "heads", "self_label")
        if kind == "heads" or tables.get(kind, {}).get("epochs")
    ]
    return found


def has_predictor(weights: Iterable[str]) -> bool:
    """Whether they were trained by `instance.kind=prediction`, which is BYOL."""
    return any(name.startswith("predictor.") for name in weights)


def upgraded_weights(weights: Mapping[str, Value]) -> dict[str, Value]:
    """Weights and buffers by their names."""
    moved = {
        "trunk.": "backbone.",
        "projection.": f"parts.{'byol.projection' if has_predictor(weights) else 'contrast'}.",
        "predictor.": "parts.byol.predictor.",
        "slow_copy.": "parts.byol.target.",
    }
    found = {}
    for name, value in weights.items():
        first = name[: name.find(".") + 1]
        found[moved.get(first, first) + name.removeprefix(first)] = value
    return found
