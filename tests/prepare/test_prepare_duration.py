"""About how long a run takes: counted in what an image takes, which is measured here and now."""

import numpy as np
import pytest

from dcdc.data import from_arrays
from dcdc.engine.trained_model import TrainedModel
from dcdc.prepare import duration
from dcdc.prepare.assembly import build_model, load_pretrained
from dcdc.prepare.duration import expected_duration
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.prepare.stored_features import stored_features


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path))


def photos(n, side=32):
    pixels = np.random.default_rng(0).integers(0, 256, (n, side, side, 3))
    return from_arrays(pixels.astype(np.uint8))


def prepared(images, **values):
    asked = {"n_clusters": 3, "train.device": "cpu", "train.threads": 1, **values}
    return prepare_run(images, Overrides(asked)).config


@pytest.fixture
def a_second_each(monkeypatch):
    """Every image takes a second."""

    def seconds(work):
        work()
        return duration._LOOKED_AT

    monkeypatch.setattr(duration, "_seconds", seconds)
    monkeypatch.setattr(duration, "_MOST_LOOKED_AT", duration._LOOKED_AT)


@pytest.mark.usefixtures("a_second_each")
def test_patches_are_eight_copies_of_all_and_two_of_each_in_every_epoch():
    images = photos(40)
    found = expected_duration(prepared(images, **{"network.backbone": "scratch"}), images)
    assert found.first == duration._K_MEANS_OF_PATCHES + 8 * 40
    assert found.training == 3 * 2 * 40 + 4 * 40  # three epochs in batches of 20, four answers


@pytest.mark.usefixtures("a_second_each")
def test_features_of_a_frozen_backbone_cost_nothing_once_they_are_kept():
    images = photos(20)
    values = {"network.backbone": "efficientnet-lite0", "network.input_size": 32}
    config = prepared(images, **values)
    assert expected_duration(config, images).first == 20
    model = build_model(config)
    load_pretrained(config, model.network)
    stored_features(model, images)
    assert expected_duration(config, images).first == 0


def test_a_batch_of_tiny_images_takes_hardly_longer_than_one(monkeypatch):
    """Digits were said to take two minutes, which took 26 s."""
    looked_at, look = [], TrainedModel.look_at_rows

    def counted(model, rows):
        looked_at.append(len(rows))
        return look(model, rows)

    monkeypatch.setattr(TrainedModel, "look_at_rows", counted)
    for side, n_looked_at in ((8, 256), (32, 64), (64, 16), (80, 16)):
        images = photos(300, side)
        config = prepared(images, **{"network.backbone": "small"})
        expected_duration(config, images)
        assert looked_at[-1] == n_looked_at


def test_it_is_measured():
    images = photos(40)
    config = prepared(images, **{"network.backbone": "small", "heads.epochs": 2})
    longer = prepared(images, **{"network.backbone": "small", "heads.epochs": 2_000})
    found = expected_duration(config, images)
    assert found.first == 0
    assert 0 < 20 * found.total < expected_duration(longer, images).total
