"""An estimator's parameters become the config of a run, the one that the command line makes; a
module as `backbone` becomes known by a name."""

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from torch import nn

from dcdc.config import RunConfig
from dcdc.data import Data, VectorSet
from dcdc.errors import InputError
from dcdc.networks import Backbone, register_module
from dcdc.networks.pretrained.python_modules import SCHEME
from dcdc.phases.frozen_heads import FrozenHeads
from dcdc.phases.heads import Heads
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.resolve import batch_sizes
from dcdc.runtime.seeding import derive_seed

_BEGUN: dict[str, Any] = {"over_clustering_first": 0.0, "initialisation": "random"}
"""Of heads that were trained before."""


def seed_of(random_state: Any) -> int:
    """An integer is the seed itself, as on the command line; anything else draws one."""
    try:
        return operator.index(random_state)
    except TypeError:
        return int(check_random_state(random_state).randint(2**31))


def restart_seed(seed: int, number: int) -> int:
    """The first of several restarts is the only one of a single."""
    return seed if number == 0 else derive_seed(seed, "restart", number)


def overrides_of(
    parameters: Mapping[str, Any], seed: int, backbone: str | None = None, *, going_on: bool = False
) -> Overrides:
    """What the parameters ask for, with the backbone by its name; `settings` wins. `going_on`: but
    for how the heads begin."""
    n_clusters = _plain(parameters["n_clusters"])
    direct = {
        # One cluster is answered without asking the network, which must have two.
        "n_clusters": 2 if n_clusters == 1 else n_clusters,
        "sizes": _sizes(parameters["sizes"]),
        "outliers": bool(parameters["outliers"]) or None,
        "epochs": _plain(parameters["epochs"]),
        "batch_size": _plain(parameters["batch_size"]),
        "train.device": parameters["device"],
        "train.seed": seed,
        "network.backbone": backbone,
        "network.frozen": False if parameters["fine_tune"] else None,
    }
    given = {key: value for key, value in direct.items() if value is not None}
    settings = parameters["settings"] or {}
    if not isinstance(settings, Mapping):
        raise InputError(f"settings={settings!r} is no dict: give {{'section.key': value}}")
    given |= {
        key: _plain(value)
        for key, value in settings.items()
        if not (going_on and key.rpartition(".")[2] in _BEGUN)
    }
    return Overrides(given, parameters["preset"])


def without_features(config: RunConfig) -> RunConfig:
    """Of a warm start: features and heads have begun already."""
    sizes = batch_sizes(config)
    scored = [
        replace(phase, batch_size=sizes[name])
        for name, phase in config.active_phases.items()
        if phase.is_scored
    ]
    phases = [phase for phase in scored if not isinstance(phase, FrozenHeads)] or scored
    begun = (replace(each, **_BEGUN) if isinstance(each, Heads) else each for each in phases)
    return replace(config, phases=tuple(begun))


def config_to_go_on(
    config: RunConfig, fitted: RunConfig, image_set: Data, rounds: int
) -> RunConfig:
    """The fitted network, the phases of its heads, and other draws in every round."""
    config = without_features(config)
    changed = {
        "n_clusters": (fitted.n_clusters, config.n_clusters or image_set.n_classes),
        "network.backbone": (fitted.network.backbone, config.network.backbone),
        "network.sobel": (fitted.network.sobel, config.network.sobel),
        **_shapes(fitted, image_set),
    }
    for name, (then, now) in changed.items():
        if then != now:
            raise InputError(
                f"warm_start cannot go on: {name} was {then}, is {now}; keep it, or set "
                "warm_start=False to start anew"
            )
    seed = derive_seed(config.train.seed, "warm start", rounds)
    return replace(config, network=fitted.network, train=replace(config.train, seed=seed))


def _shapes(fitted: RunConfig, now: Data) -> dict[str, tuple[Any, Any]]:
    if isinstance(now, VectorSet):
        return {"features": (fitted.data.n_features, now.n_features)}
    return {
        "pixels a side": (fitted.data.size, now.side),
        "channels": (len(fitted.network.mean or ()), now.channels),
    }


def _sizes(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else [float(share) for share in value]


def _plain(value: Any) -> Any:
    """NumPy's numbers, as a grid of np.arange has them, are Python's own here."""
    return value.item() if isinstance(value, np.generic) else value


def spec_of(backbone: Any) -> str | None:
    """As a config has it; None: whatever the images suggest."""
    if backbone is None or isinstance(backbone, str):
        return backbone
    if is_module(backbone):
        return register_module(backbone)
    raise InputError(
        f"backbone is a {type(backbone).__name__}: give a name such as 'efficientnet-lite0', an "
        "nn.Module or a dcdc.networks.Backbone"
    )


def is_module(backbone: Any) -> bool:
    """Known to this process alone, so that it must be sent to others."""
    return isinstance(backbone, nn.Module | Backbone)


def make_known(backbone: Any, spec: str) -> None:
    """Where a fitted estimator comes from another process."""
    scheme, _, name = spec.partition(":")
    if is_module(backbone) and scheme == SCHEME:
        register_module(backbone, name=name)
