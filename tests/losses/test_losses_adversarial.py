import math

import pytest
import torch

from dcdc.losses import discriminator_loss, generator_loss


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_as_the_slow_loops_have_it():
    real, made = torch.tensor([0.3, -1.2, 2.0]).double(), torch.tensor([-0.7, 0.1]).double()
    told = (
        sum(-math.log(sigmoid(x)) for x in real.tolist()) / 3
        + sum(-math.log(1 - sigmoid(x)) for x in made.tolist()) / 2
    ) / 2
    assert discriminator_loss(real, made).item() == pytest.approx(told, rel=1e-9)
    fooled = sum(-math.log(sigmoid(x)) for x in made.tolist()) / 2
    assert generator_loss(made).item() == pytest.approx(fooled, rel=1e-9)


def test_who_cannot_tell_loses_log_two():
    undecided = torch.zeros(4)
    assert discriminator_loss(undecided, undecided).item() == pytest.approx(math.log(2))
    assert generator_loss(undecided).item() == pytest.approx(math.log(2))


def test_what_is_good_for_the_one_is_bad_for_the_other():
    fooled, found_out = torch.full((3,), 4.0), torch.full((3,), -4.0)
    assert generator_loss(fooled) < generator_loss(found_out)
    real = torch.full((3,), 4.0)
    assert discriminator_loss(real, found_out) < discriminator_loss(real, fooled)


def test_extreme_logits_stay_finite():
    logits = torch.tensor([1e4, -1e4], requires_grad=True)
    loss = discriminator_loss(logits, logits) + generator_loss(logits)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
