"""Loss curves of short runs, kept: a refactor that moves one has changed the method.

Run in float64 and by short steps so that processors agree: perturbations are in float32, whose last
digits are a processor's own, and of a gradient's last digit Adam makes a whole step.
`python tests/golden/test_golden_curve.py` writes them anew after a change that is meant to move
them.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcdc.config import with_values
from dcdc.data import ImageSet, from_arrays, load_digits
from dcdc.engine.observer import SilentObserver
from dcdc.prepare.assembly import build_training
from dcdc.prepare.presets import CIFAR_MEAN, CIFAR_STD, preset
from dcdc.prepare.resolve import resolve

FOLDER = Path(__file__).parent
KEPT = (
    *("loss", "contrast", "cluster_head/sample_view", "over_clustering_head/class_view"),
    *("discriminate", "frozen_heads", "self_label", "sure", "mean_confidence"),
)
SHORT_STEPS = {
    "digits": {
        "heads.epochs": 4,
        "heads.over_clustering_first": 2,
        "heads.batch_size": 32,
        "heads.learning_rate": 3e-5,
        "augment.crop_scale": (0.5, 1.0),
        "augment.brightness": 0.2,
        "augment.resize_to": 10,
        "self_label.epochs": 0,
    },
    "cifar10": {
        "data.size": 8,
        "network.backbone": "small",
        "discriminate.epochs": 2,
        "discriminate.batch_size": 32,
        "discriminate.learning_rate": 3e-5,
        "discriminate.warmup_epochs": 0.5,
        "frozen_heads.epochs": 2,
        "frozen_heads.batch_size": 32,
        "frozen_heads.learning_rate": 3e-5,
        "frozen_heads.neighbours": 3,
        "frozen_heads.n_heads": 4,
        "train.evaluate_every": 1,
        "train.threads": 1,
        "self_label.epochs": 2,
        "self_label.threshold": 0.8,
        "self_label.learning_rate": 3e-5,
    },
    "stl10": {
        "phases": ("contrast", "heads", "self_label"),
        "data.size": 8,
        "network.mean": CIFAR_MEAN,
        "network.std": CIFAR_STD,
        "augment.resize_to": 10,
        "network.backbone": "small",
        "network.over_clusters": 20,
        "contrast.epochs": 2,
        "contrast.batch_size": 32,
        "contrast.learning_rate": 3e-5,
        "heads.epochs": 2,
        "heads.batch_size": 32,
        "heads.learning_rate": 3e-5,
        "heads.neighbours": 3,
        "heads.n_repeats": 1,
        "heads.order": "joint",
        "heads.initialisation": "spherical-k-means",
        "heads.schedule": "cosine",
        "train.evaluate_every": 1,
        "train.threads": 1,
        "self_label.epochs": 2,
        "self_label.threshold": 0.8,
        "self_label.learning_rate": 3e-5,
        "self_label.copies": "perturbed",
    },
}
"""Of each preset: `digits` has a head that trains alone and a K-Means start; `cifar10` has
features, heads on them and strong copies. That of `stl10` has its contrast, and in the place of
what follows the heads that train with the network, neighbours as their partners and perturbed
copies. The backbone is the small one here, so that they take seconds."""


def grey_digits() -> ImageSet:
    digits = load_digits()
    return replace(
        digits, images=digits.images[:256], names=digits.names[:256], targets=digits.targets[:256]
    )


def coloured_digits() -> ImageSet:
    """96 of them, each with a colour of its own on one of another."""
    digits = load_digits()
    ink = digits.images[:96].astype(np.float64) / 255
    paper, pen = np.random.default_rng(0).integers(0, 256, (2, 96, 1, 1, 3))
    images = (paper + ink * (pen - paper)).round().astype(np.uint8)
    return from_arrays(images, targets=digits.targets[:96])


def curve(name: str) -> list[dict[str, float]]:
    images = grey_digits() if name == "digits" else coloured_digits()
    config = with_values(preset(name), SHORT_STEPS[name] | {"train.device": "cpu"})
    training = build_training(resolve(config, images), images, SilentObserver(), None)
    training.model.network.double()
    training.trainer.train()
    return [
        {key: record[key] for key in KEPT if key in record} for record in training.trainer.history
    ]


@pytest.mark.parametrize("name", SHORT_STEPS)
def test_the_curve_is_where_it_was(name):
    kept = json.loads((FOLDER / f"{name}.json").read_text())
    found = curve(name)
    assert len(found) == len(kept)
    for ours, theirs in zip(found, kept, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


if __name__ == "__main__":
    for name in SHORT_STEPS:
        (FOLDER / f"{name}.json").write_text(json.dumps(curve(name), indent=1) + "\n")
