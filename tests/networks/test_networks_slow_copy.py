"""A slow copy against the arithmetic spelled out, and what it must not touch."""

import pytest
import torch
from torch import nn

from dcdc.networks.slow_copy import SlowCopy


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
    slow = SlowCopy(followed)
    before = followed(images).detach()
    assert torch.equal(slow(images), before)
    move(followed)
    assert torch.equal(slow(images), before)
    slow.catch_up(followed)
    assert torch.equal(slow(images), followed(images))


def test_it_has_no_parameters_no_gradient_and_the_same_layout(followed):
    slow = SlowCopy(followed)
    assert not list(slow.parameters())
    images = torch.rand(6, 3, 4, 4, requires_grad=True)
    assert not slow(images).requires_grad
    assert slow.state_dict().keys() == {f"network.{name}" for name in followed.state_dict()}
    for name, tensor in followed.state_dict().items():
        assert slow.state_dict()[f"network.{name}"].stride() == tensor.stride()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_following_moves_every_weight_and_no_statistics(followed, momentum):
    slow = SlowCopy(followed)
    start = {name: tensor.clone() for name, tensor in slow.network.state_dict().items()}
    move(followed)
    followed[1].running_mean.fill_(7)
    theirs = {name: weight.detach().clone() for name, weight in followed.named_parameters()}
    slow.follow(followed, momentum)
    for name, tensor in slow.network.state_dict().items():
        expected = start[name]
        if name in theirs:
            expected = momentum * expected + (1 - momentum) * theirs[name]
        torch.testing.assert_close(tensor, expected, msg=name)
    for name, weight in followed.named_parameters():
        assert torch.equal(weight, theirs[name])


def test_the_state_is_read_back(followed):
    slow = SlowCopy(followed)
    move(followed)
    slow.follow(followed, 0.5)
    slow(torch.rand(6, 3, 4, 4))  # its statistics are its own
    other = SlowCopy(followed)
    other.load_state_dict(slow.state_dict())
    for name, tensor in slow.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
