"""What a training needs in memory at the very least: too much is told before anything is tried.

Shapes: B images of a batch, r perturbed copies of each, K outputs of a head, S sub-heads.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from dcdc.config import RunConfig
from dcdc.data import Data, VectorSet
from dcdc.errors import InputError
from dcdc.phases.heads import Heads
from dcdc.runtime.environment import free_memory

_FLOAT = 4
_WITH_ADAM = 4  # a weight, its gradient and two moments
_WITH_GRADIENT = 2
_FEWEST_FEATURES = 64  # of any backbone: its own number is known once it is built


class _Need(NamedTuple):
    n_bytes: int
    what: str
    lower: str
    """The settings that make it smaller, as a remedy names them."""


def check_memory(config: RunConfig, image_set: Data, device: torch.device) -> None:
    """Refuses what cannot fit in the memory that is free; what may fit is tried."""
    free = free_memory(device)
    needs = list(_needs(config, image_set))
    total = sum(need.n_bytes for need in needs)
    if free is None or total <= free:
        return
    largest = max(needs)
    raise InputError(
        f"training needs at least {total / 1e9:,.0f} GB, of which {largest.n_bytes / 1e9:,.0f} GB "
        f"for {largest.what}, and {free / 1e9:,.1f} GB are free on {device.type}",
        remedy=f"lower {largest.lower}",
    )


def _needs(config: RunConfig, image_set: Data) -> Iterator[_Need]:
    """Of the heads, and of the largest step of them; the backbone comes on top."""
    network = config.network
    assert config.n_clusters is not None
    heads = {"n_clusters": config.n_clusters, "network.over_clusters": network.over_clusters}
    n_features = config.data.n_features or _FEWEST_FEATURES
    setting = max(heads, key=heads.__getitem__)
    named = f"{{{setting}}}" + (" or {network.sub_heads}" if network.sub_heads > 1 else "")
    weights = sum(heads.values()) * network.sub_heads * n_features * _FLOAT * _WITH_ADAM
    yield _Need(weights, "the heads", named)
    yield max(_of_steps(config, image_set, max(heads.values()), setting), default=_Need(0, "", ""))


def _of_steps(config: RunConfig, image_set: Data, n_outputs: int, setting: str) -> Iterator[_Need]:
    """What a step holds at once, by its parts: the largest of them counts."""
    n_values = _values_of_one(image_set)
    size = 0
    for name, phase in config.active_phases.items():
        size = phase.batch_size or size
        repeats = phase.n_repeats if isinstance(phase, Heads) else 2
        if isinstance(image_set, VectorSet) or config.network.frozen:
            repeats = 1
        more = f" or {{{name}.n_repeats}}" if repeats > 2 else ""
        lower = f"{{{name}.batch_size}}{more}"
        n_copies = size * repeats
        yield _Need((size + n_copies) * n_values * _FLOAT, f"the copies of a step of {name}", lower)
        if not isinstance(phase, Heads):
            continue
        affinity = n_copies**2 * _FLOAT * _WITH_GRADIENT
        yield _Need(affinity, f"the sample view of {name}", lower)
        yield _Need(
            n_outputs**2 * _FLOAT * _WITH_GRADIENT, f"the class view of {name}", f"{{{setting}}}"
        )
        yield _Need(
            (size + n_copies) * n_outputs * config.network.sub_heads * _FLOAT * _WITH_GRADIENT,
            f"the assignments of a step of {name}",
            f"{{{setting}}}, {{network.sub_heads}} or {lower}",
        )


def _values_of_one(image_set: Data) -> int:
    if isinstance(image_set, VectorSet):
        return image_set.n_features
    height, width, channels = image_set.image_shape
    return height * width * channels
