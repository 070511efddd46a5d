"""A floor of quality for our recipes for photos, all their phases, on images that take seconds."""

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.data import from_arrays
from dcdc.prepare.presets import PRESETS, preset
from dcdc.run import run

TINY = {
    "n_clusters": 3,
    "data.size": 12,
    "network.backbone": "small",
    "network.mean": None,
    "network.std": None,
    "augment.crop_scale": (0.6, 1.0),
    "augment.hue": 0.4,
    "train.threads": 1,
    "train.device": "cpu",
    "train.evaluate_every": 100,
    "self_label.epochs": 2,
}
RECIPES = {
    "cifar10": {
        "phases": ("contrast", "frozen_heads", "self_label"),
        "augment.saturation": 0.4,
        "contrast.epochs": 10,
        "contrast.batch_size": 60,
        "contrast.schedule": "cosine",
        "frozen_heads.epochs": 4,
        "frozen_heads.batch_size": 60,
        "frozen_heads.neighbours": 5,
    },
    "stl10": {
        "contrast.epochs": 10,
        "contrast.batch_size": 60,
        "frozen_heads.epochs": 4,
        "frozen_heads.batch_size": 60,
        "frozen_heads.neighbours": 5,
    },
    "heads that train with the network": {
        "phases": ("contrast", "heads", "self_label"),
        "network.over_clusters": 12,
        "augment.resize_to": 14,
        "contrast.epochs": 10,
        "contrast.batch_size": 60,
        "heads.epochs": 4,
        "heads.batch_size": 60,
        "heads.neighbours": 5,
        "heads.n_repeats": 1,
        "heads.order": "joint",
        "heads.initialisation": "spherical-k-means",
        "heads.learning_rate": 3e-4,
        "heads.schedule": "cosine",
        "self_label.learning_rate": 3e-4,
        "self_label.copies": "perturbed",
    },
}
"""Features of `cifar10` by contrast, as those of `stl10`: cluster discrimination takes tens of
thousands of steps until its clusters are more than those of a network of random weights."""


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


def accuracy(name, images, *, rate=None):
    """`rate`: of every phase."""
    known = name if name in PRESETS else "stl10"
    config = with_values(preset(known), TINY | RECIPES[name])
    if rate is not None:
        config = with_values(
            config, {f"{phase}.learning_rate": rate for phase in config.phase_names}
        )
    return run(config, images).metrics["scores"]["acc"]


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_finds_what_the_images_show(stripes, name):
    assert accuracy(name, stripes) > 0.9


@pytest.mark.parametrize("name", RECIPES)
def test_it_would_not_without_learning(stripes, name):
    """So what the test above asks for is learnt."""
    assert accuracy(name, stripes, rate=1e-12) < 0.7
