"""A floor of quality for our recipe for photos, all its phases, on images that take seconds."""

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.data import from_arrays
from dcdc.prepare.presets import preset
from dcdc.run import run

TINY = {
    "n_clusters": 3,
    "data.size": 12,
    "network.backbone": "small",
    "network.over_clusters": 12,
    "network.mean": None,
    "network.std": None,
    "augment.resize_to": 14,
    "augment.crop_scale": (0.6, 1.0),
    "augment.hue": 0.4,
    "contrast.epochs": 10,
    "contrast.batch_size": 60,
    "heads.epochs": 4,
    "heads.batch_size": 60,
    "heads.neighbours": 5,
    "train.threads": 1,
    "train.device": "cpu",
    "train.evaluate_every": 100,
    "self_label.epochs": 2,
}
LEARNING_RATES = ("contrast.learning_rate", "heads.learning_rate", "self_label.learning_rate")


@pytest.fixture(scope="module")
def stripes():
    """240 of 12 pixels: stripes across, stripes down, a board; colours and places say nothing."""
    random = np.random.default_rng(0)
    down, across = np.mgrid[:12, :12]
    images = []
    for kind in range(240):
        first, second = random.integers(0, 2, 2)
        rows, columns = (down + first) // 3 % 2, (across + second) // 3 % 2
        shape = (rows, columns, rows ^ columns)[kind % 3]
        paper, pen = random.uniform(20, 135, 3), random.uniform(80, 255, 3)
        images.append(np.where(shape[..., None], pen, paper) + random.normal(0, 10, (12, 12, 3)))
    pixels = np.stack(images).clip(0, 255).astype(np.uint8)
    return from_arrays(pixels, targets=np.arange(240) % 3)


def accuracy(images, changes):
    config = with_values(preset("cifar10"), TINY | changes)
    return run(config, images).metrics["scores"]["acc"]


def test_the_recipe_finds_what_the_images_show(stripes):
    assert accuracy(stripes, {}) > 0.9


def test_it_would_not_without_learning(stripes):
    """So what the test above asks for is learnt."""
    assert accuracy(stripes, dict.fromkeys(LEARNING_RATES, 1e-12)) < 0.7
