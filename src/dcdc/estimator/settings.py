"""An estimator's parameters become the config of a run, the one that the command line makes."""

import operator
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dcdc.config import AugmentConfig, RunConfig, with_values
from dcdc.config_for_images import suggest_for
from dcdc.data import ImageSet
from dcdc.errors import InputError, TrainingError
from dcdc.presets import preset
from dcdc.runtime.seeding import derive_seed

_ROW_AUGMENT = AugmentConfig(noise=0.05)
"""Of rows that are no images: turned or shifted, they would be other rows."""

_IN_PYTHON = (
    (r", or use --on-bad skip", ""),
    (r" \(--[a-z-]+\)", ""),
    (r"--clusters", "n_clusters"),
    (r"--batch-size", "batch_size"),
    (r"--epochs", "epochs"),
    (r"--device (\w+)", r'device="\1"'),
    (r"--set ([a-z_]+\.[a-z_]+)=?", r'settings["\1"]'),
)


def seed_of(random_state: Any) -> int:
    """An integer is the seed itself, as on the command line; anything else draws one."""
    try:
        return operator.index(random_state)
    except TypeError:
        return int(check_random_state(random_state).randint(2**31))


def restart_seed(seed: int, number: int) -> int:
    """The first of several restarts is the only one of a single."""
    return seed if number == 0 else derive_seed(seed, "restart", number)


_GOING_ON = {
    "instance.epochs": 0,
    "train.over_clustering_first": 0.0,
    "train.head_start": "random",
}
"""Of a warm start: features and heads have begun already."""


def values_of(parameters: Mapping[str, Any], seed: int, going_on: bool) -> dict[str, Any]:
    """Flat `section.key` values that were asked for; `settings` wins."""
    n_clusters = _plain(parameters["n_clusters"])
    direct = {
        # One cluster is answered without asking the network, which must have two.
        "n_clusters": 2 if n_clusters == 1 else n_clusters,
        "train.epochs": _plain(parameters["epochs"]),
        "train.batch_size": _plain(parameters["batch_size"]),
        "train.device": parameters["device"],
        "train.seed": seed,
    }
    given = {key: value for key, value in direct.items() if value is not None}
    settings = parameters["settings"] or {}
    if not isinstance(settings, Mapping):
        raise InputError(f"settings={settings!r} is no dict: give {{'section.key': value}}")
    given |= {key: _plain(value) for key, value in settings.items()}
    return given | (_GOING_ON if going_on else {})


def asked_for(parameters: Mapping[str, Any], seed: int, going_on: bool) -> RunConfig:
    """Before the images are seen."""
    name = parameters["preset"]
    values = values_of(parameters, seed, going_on)
    return with_values(preset(name) if name else RunConfig(), values)


def config_for(
    parameters: Mapping[str, Any],
    seed: int,
    image_set: ImageSet,
    *,
    are_images: bool,
    going_on: bool,
) -> RunConfig:
    asked = asked_for(parameters, seed, going_on)
    if parameters["preset"]:
        return asked
    suggested = suggest_for(image_set, asked.n_clusters, asked.train.device)
    if not are_images:
        suggested = replace(suggested, augment=_ROW_AUGMENT)
    return with_values(suggested, values_of(parameters, seed, going_on))


def config_to_go_on(
    config: RunConfig, fitted: RunConfig, image_set: ImageSet, rounds: int
) -> RunConfig:
    """The fitted network, and other draws in every round."""
    changed = {
        "n_clusters": (fitted.n_clusters, config.n_clusters or image_set.n_classes),
        "network.trunk": (fitted.network.trunk, config.network.trunk),
        "network.sobel": (fitted.network.sobel, config.network.sobel),
        "pixels a side": (fitted.data.size, image_set.side),
        "channels": (len(fitted.network.mean or ()), image_set.channels),
    }
    for name, (then, now) in changed.items():
        if then != now:
            raise InputError(
                f"warm_start cannot go on: {name} was {then}, is {now}; keep it, or set "
                "warm_start=False to start anew"
            )
    seed = derive_seed(config.train.seed, "warm start", rounds)
    return replace(config, network=fitted.network, train=replace(config.train, seed=seed))


def _plain(value: Any) -> Any:
    """NumPy's numbers, as a grid of np.arange has them, are Python's own here."""
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def in_python_words() -> Iterator[None]:
    """Faults name parameters instead of flags."""
    try:
        yield
    except (InputError, TrainingError) as error:
        text = str(error)
        for flag, word in _IN_PYTHON:
            text = re.sub(flag, word, text)
        raise type(error)(text) from None
