import numpy as np
import pytest
import torch

from dcdc.errors import InputError
from dcdc.prepare.assembly import build_model
from dcdc.prepare.resolve import resolve


@pytest.fixture
def model(tiny_config, tiny_set):
    return build_model(resolve(tiny_config, tiny_set))


def test_predictions_agree_and_keep_the_order(model, tiny_set, monkeypatch):
    whole = model.predict_proba(tiny_set.images)
    monkeypatch.setattr("dcdc.engine.trained_model.CHUNK", 7)  # 48 does not divide evenly
    assert np.allclose(model.predict_proba(tiny_set.images), whole, atol=1e-6)
    assert np.array_equal(model.predict(tiny_set.images), whole.argmax(1))
    assert whole.shape == (48, 3)
    assert whole.sum(1) == pytest.approx(np.ones(48))
    assert model.transform(tiny_set.images).shape == (48, 256)
    shuffled = np.random.default_rng(0).permutation(48)
    assert np.allclose(model.predict_proba(tiny_set.images[shuffled]), whole[shuffled], atol=1e-6)


def test_an_answer_does_not_depend_on_its_neighbours_or_change_the_model(model, tiny_set):
    model.network.train()
    before = [tensor.clone() for tensor in model.network.state_dict().values()]
    whole = model.predict_proba(tiny_set.images)
    assert np.allclose(model.predict_proba(tiny_set.images[:1]), whole[:1], atol=1e-6)
    after = model.network.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert model.network.training


def test_larger_images_are_brought_to_size(model, tiny_set):
    larger = tiny_set.images.repeat(3, axis=1).repeat(3, axis=2)
    assert model.predict(larger).shape == (48,)


def test_other_channels_are_refused(model):
    with pytest.raises(InputError, match=r"trained on images of 1 channel.*these have 3"):
        model.predict(np.zeros((2, 8, 8, 3), np.uint8))


def test_pixels_at_its_size_are_answered_as_a_set_is(model, tiny_set, monkeypatch):
    features, assigned = model.look_at_rows(tiny_set.images)
    assert np.allclose(features, model.transform(tiny_set.images), atol=1e-6)
    assert np.allclose(assigned.probabilities, model.predict_proba(tiny_set.images), atol=1e-6)
    monkeypatch.setattr("dcdc.engine.trained_model.CHUNK", 7)
    assert model.look_at_rows(tiny_set.images)[0].shape == (48, 256)
