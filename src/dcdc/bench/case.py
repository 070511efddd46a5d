"""A preset with random images of its size: time does not depend on what an image shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcdc.config import RunConfig, with_settings, with_values
from dcdc.data import ImageSet
from dcdc.data.image_set import numbered_names
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import batch_sizes, resolve

_MOST_IMAGES = 10_000
_MOST_BYTES = 64 * 2**20
_DIGITS_SIDE = 8


@dataclass(frozen=True)
class Case:
    preset: str
    config: RunConfig
    """As resolved on the images."""
    image_set: ImageSet


def build_case(name: str, values: dict[str, Any], settings: Sequence[str]) -> Case:
    """A preset with `section.key=value` settings laid over it, and values by `section.key`, of
    which None leaves the preset's."""
    given = {key: value for key, value in values.items() if value is not None}
    config = with_settings(with_values(preset(name), given), settings)
    image_set = random_images(config)
    return Case(name, resolve(config, image_set), image_set)


def random_images(config: RunConfig) -> ImageSet:
    side = config.data.size or _DIGITS_SIDE
    if config.network.mean is not None:
        channels = len(config.network.mean)
    else:
        augment = config.augment
        channels = 3 if augment.saturation or augment.hue or augment.grey else 1
    n_images = min(_MOST_IMAGES, _MOST_BYTES // (side * side * channels))
    n_images = max(n_images, 2 * max(batch_sizes(config).values()))
    random = np.random.default_rng(config.train.seed)
    images = random.integers(0, 256, (n_images, side, side, channels), np.uint8)
    return ImageSet(images, numbered_names("random", n_images))
