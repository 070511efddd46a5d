"""The loss curve of a short run, kept: a refactor that moves it has changed the method.

Run in float64 and by short steps so that processors agree: perturbations are in float32, whose last
digits are a processor's own, and of a gradient's last digit Adam makes a whole step.
`python tests/golden/test_golden_curve.py` writes it anew after a change that is meant to move it.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dcdc.assembly import build_training
from dcdc.config import with_values
from dcdc.config_for_images import resolve
from dcdc.data import load_digits
from dcdc.engine.observer import SilentObserver
from dcdc.presets import preset

CURVE = Path(__file__).with_name("curve.json")
KEPT = ("loss", "cluster_head/sample_view", "over_clustering_head/class_view", "mean_confidence")


def curve() -> list[dict[str, float]]:
    digits = load_digits()
    few = replace(
        digits, images=digits.images[:256], names=digits.names[:256], targets=digits.targets[:256]
    )
    config = with_values(
        preset("digits"),
        {
            "train.epochs": 4,
            "train.over_clustering_first": 2,
            "train.batch_size": 32,
            "train.learning_rate": 3e-5,
            "train.device": "cpu",
            "augment.crop_scale": (0.5, 1.0),
            "augment.brightness": 0.2,
            "augment.resize_to": 10,
            "self_label.epochs": 0,
        },
    )
    training = build_training(resolve(config, few), few, SilentObserver(), None)
    training.model.network.double()
    training.trainer.train()
    return [
        {key: record[key] for key in KEPT if key in record} for record in training.trainer.history
    ]


def test_the_curve_is_where_it_was():
    kept = json.loads(CURVE.read_text())
    found = curve()
    assert len(found) == len(kept)
    for ours, theirs in zip(found, kept, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


if __name__ == "__main__":
    CURVE.write_text(json.dumps(curve(), indent=1) + "\n")
