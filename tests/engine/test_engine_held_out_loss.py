"""The loss by which trainings are compared: the same draws for all, and nothing left behind."""

import numpy as np
import torch

from dcdc.config import with_values
from dcdc.engine import held_out_loss as module
from dcdc.prepare.assembly import build_model, held_out_loss_of
from dcdc.prepare.resolve import resolve
from dcdc.run import run


def test_it_follows_from_the_weights_and_the_seed_alone(tiny_config, tiny_set):
    config = resolve(tiny_config, tiny_set)
    model = run(config, tiny_set).model
    before = {name: t.clone() for name, t in model.network.state_dict().items()}
    first = held_out_loss_of(config, model, tiny_set, seed=0)
    np.random.seed(5)
    torch.manual_seed(5)
    other_run = with_values(config, {"train.seed": 9})  # the training's own draws do not matter
    assert held_out_loss_of(other_run, model, tiny_set, seed=0) == first
    assert held_out_loss_of(config, model, tiny_set, seed=1) != first
    assert model.network.training
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_training_lowers_it(tiny_config, tiny_set):
    config = resolve(tiny_config, tiny_set)
    untrained = held_out_loss_of(config, build_model(config), tiny_set, seed=0)
    trained = held_out_loss_of(config, run(config, tiny_set).model, tiny_set, seed=0)
    assert trained < untrained


def test_a_large_set_is_sampled(tiny_config, tiny_set, monkeypatch):
    config = resolve(tiny_config, tiny_set)
    model = run(config, tiny_set).model
    whole = held_out_loss_of(config, model, tiny_set, seed=0)
    monkeypatch.setattr(module, "MOST_IMAGES", 16)
    assert held_out_loss_of(config, model, tiny_set, seed=0) != whole
