"""An EMA target against the arithmetic spelled out, and what it must not touch."""

import pytest
import torch
from torch import nn

from dcdc.networks.ema_target import EmaTarget


@pytest.fixture
def followed():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 2 * 2, 5)
    ).to(memory_format=torch.channels_last)


def move(module):
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight))


def test_it_begins_as_what_it_follows_and_shares_nothing_with_it(followed):
    images = torch.rand(6, 3, 4, 4)
    target = EmaTarget(followed)
    before = followed(images).detach()
    assert torch.equal(target(images), before)
    move(followed)
    assert torch.equal(target(images), before)
    target.catch_up(followed)
    assert torch.equal(target(images), followed(images))


def test_it_has_no_parameters_no_gradient_and_the_same_layout(followed):
    target = EmaTarget(followed)
    assert not list(target.parameters())
    images = torch.rand(6, 3, 4, 4, requires_grad=True)
    assert not target(images).requires_grad
    assert target.state_dict().keys() == {f"network.{name}" for name in followed.state_dict()}
    for name, tensor in followed.state_dict().items():
        assert target.state_dict()[f"network.{name}"].stride() == tensor.stride()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_following_moves_every_weight_and_no_statistics(followed, momentum):
    target = EmaTarget(followed)
    start = {name: tensor.clone() for name, tensor in target.network.state_dict().items()}
    move(followed)
    followed[1].running_mean.fill_(7)
    theirs = {name: weight.detach().clone() for name, weight in followed.named_parameters()}
    target.follow(followed, momentum)
    for name, tensor in target.network.state_dict().items():
        expected = start[name]
        if name in theirs:
            expected = momentum * expected + (1 - momentum) * theirs[name]
        torch.testing.assert_close(tensor, expected, msg=name)
    for name, weight in followed.named_parameters():
        assert torch.equal(weight, theirs[name])


def test_the_state_is_read_back(followed):
    target = EmaTarget(followed)
    move(followed)
    target.follow(followed, 0.5)
    target(torch.rand(6, 3, 4, 4))  # its statistics are its own
    other = EmaTarget(followed)
    other.load_state_dict(target.state_dict())
    for name, tensor in target.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
