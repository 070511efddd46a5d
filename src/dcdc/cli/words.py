"""What the command line calls parameters: faults that come from below name them here."""

from collections.abc import Callable, Mapping
from typing import Any

from dcdc.errors import Words
from dcdc.experiments import FIT_FLAGS


def _words(flags: Mapping[str, str], other: Callable[[str], str | None]) -> Words:
    """By their flags, or by --set; `other` is for what is no setting of the engine."""

    def name(key: str) -> str | None:
        if key in flags:
            return flags[key]
        return f"--set {key}" if "." in key or key == "phases" else other(key)

    def given(key: str, value: Any) -> str | None:
        flag = name(key)
        if flag is None:
            return None
        return f"{flag}={value}" if flag.startswith("--set ") else f"{flag} {value}"

    return Words(name, given)


def _in_compare() -> Words:
    """A setting of the engine is given to a method: `--set dcdc.heads.epochs`."""
    plain = _words(_COMPARE, lambda _: None)

    def known(key: str) -> str:
        rest = key.partition(".")[2]
        return rest if "." in rest and rest in _COMPARE else key

    return Words(
        lambda key: plain.name(known(key)), lambda key, value: plain.given(known(key), value)
    )


_EVERYWHERE = {"train.device": "--device", "device": "--device", "out": "--out", "set": "--set"}
_SOURCE = {"data.source": "DATA"}
_OF_IMAGES = {key: flag for key, flag in FIT_FLAGS.items() if key.startswith("data.")}
_IMAGES = {key.removeprefix("data."): flag for key, flag in _OF_IMAGES.items()}
_SEEDS = {"train.seed": "--first-seed", "seeds": "--seeds", "first_seed": "--first-seed"}
_FIT = FIT_FLAGS | _EVERYWHERE | _SOURCE
_COMPARE = (
    _EVERYWHERE
    | _IMAGES
    | _OF_IMAGES
    | _SOURCE
    | _SEEDS
    | {"n_clusters": "--clusters", "methods": "--methods", "backbone": "--backbone"}
)
_REPRODUCE = (
    _EVERYWHERE
    | _SEEDS
    | {key: f"--set data.{key}" for key in _IMAGES}
    | {
        "n_clusters": "--set n_clusters",
        "heads.epochs": "--epochs",
        "data.source": "--data NAME=SOURCE",
        "dataset": "--dataset",
    }
)

COMMAND_LINE = _words(_FIT, lambda key: f"--{key.replace('_', '-')}")
COMPARE = _in_compare()
REPRODUCE = _words(_REPRODUCE, lambda _: None)
