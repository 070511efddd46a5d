"""Which pretrained backbone a run of photos takes where nobody named one."""

import os
from collections.abc import Iterable

from dcdc.config import PHASES
from dcdc.config.keys import HEADS
from dcdc.config.phase_settings import kind_of
from dcdc.data import ImageSet
from dcdc.errors import InputError
from dcdc.networks import find_backbone
from dcdc.networks.pretrained.efficientnet_lite0 import is_available
from dcdc.prepare.overrides import Overrides

VARIABLE = "DCDC_BACKBONE"
"""Environment: the backbone for photos where none is named; `scratch` for none."""
SCRATCH = "scratch"
"""In a backbone's place: train one from scratch."""
EFFICIENTNET = "efficientnet-lite0"
SMALLEST_SIDE = 17
"""Pixels: below, there is nothing that a network for photos could see."""
_OF_TRAINING = ("augment.", "network.", "phases")
"""Settings that speak of a training from scratch, beside those of every phase but the heads'."""
_OF_FEATURES = ("network.sub_heads", "network.frozen", "network.backbone_rate")


def usual_backbone() -> str | None:
    """The one that the environment names, or EfficientNet-Lite0 where it is installed."""
    named = os.environ.get(VARIABLE)
    if named == SCRATCH:
        return None
    if named:
        if find_backbone(named).pretrained is None:
            raise InputError(f"{VARIABLE}={named} names no pretrained backbone")
        return named
    return EFFICIENTNET if is_available() else None


def is_missing() -> bool:
    """Whether none is installed, and the environment decided nothing."""
    return not os.environ.get(VARIABLE) and not is_available()


def from_scratch(overrides: Overrides) -> Overrides:
    """Without the word `scratch`, which is no backbone."""
    if overrides.given.get("network.backbone") != SCRATCH:
        return overrides
    return overrides.without("network.backbone")


def speaks_of_training(keys: Iterable[str]) -> bool:
    """Whether settings that were asked for have no meaning beside a frozen backbone."""
    others = [kind for kind in PHASES.names() if kind != HEADS]
    return any(
        key.startswith(_OF_TRAINING) or kind_of(key.rpartition(".")[0]) in others
        for key in keys
        if key not in _OF_FEATURES
    )


def are_photos(image_set: ImageSet) -> bool:
    return image_set.channels == 3 and image_set.side >= SMALLEST_SIDE
