"""Adam and SGD here are torch.optim's, and leave torch's compiler out of the process."""

import math

import pytest
import torch
from torch import nn

from dcdc.engine.optimiser import MOMENTUM, Adam, Sgd, learning_rate_factor


def weights() -> list[nn.Parameter]:
    """One laid out as convolutions have it, one plain, one that never has a gradient."""
    drawn = torch.Generator().manual_seed(0)
    shapes = ((4, 3, 3, 3), (5,), (2, 2))
    made = [torch.randn(shape, generator=drawn) for shape in shapes]
    made[0] = made[0].contiguous(memory_format=torch.channels_last)
    return [nn.Parameter(tensor) for tensor in made]


def train(parameters, optimiser, rates, set_rate) -> None:
    drawn = torch.Generator().manual_seed(1)
    for number, rate in enumerate(rates):
        set_rate(optimiser, rate)
        for parameter in parameters[: 1 + number % 2]:  # the plain one rests every other time
            parameter.grad = torch.empty_like(parameter).normal_(generator=drawn)
        optimiser.step()
        optimiser.zero_grad()
        assert all(parameter.grad is None for parameter in parameters)


def ours(optimiser, rate) -> None:
    optimiser.lr = rate


def theirs(optimiser, rate) -> None:
    optimiser.param_groups[0]["lr"] = rate


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.999)])
def test_it_is_the_adam_of_torch(fused, betas):
    found, expected = weights(), weights()
    rates = (1e-2, 1e-2, 3e-3, 0.0, 1e-3)
    adam = Adam(found, 1.0, betas, fused=fused)
    reference = torch.optim.Adam(expected, lr=1.0, betas=betas, fused=fused)
    train(found, adam, rates, ours)
    train(expected, reference, rates, theirs)
    for left, right in zip(found, expected, strict=True):
        assert torch.equal(left, right)
    for name in ("step", "exp_avg", "exp_avg_sq"):
        assert torch.equal(adam.state[found[1]][name], reference.state[expected[1]][name])
    assert found[2] not in adam.state


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_it_is_the_sgd_of_torch(fused, weight_decay):
    """Its fused one does not bear a weight whose first gradient comes later."""
    found, expected = weights(), weights()
    rates = (1e-2, 1e-2, 3e-3, 0.0, 1e-3)
    sgd = Sgd(found, 1.0, weight_decay=weight_decay, fused=fused)
    reference = torch.optim.SGD(expected, lr=1.0, momentum=MOMENTUM, weight_decay=weight_decay)
    train(found, sgd, rates, ours)
    train(expected, reference, rates, theirs)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-7)
    assert found[2] not in sgd.state


@pytest.mark.parametrize("fused", [False, True])
def test_loaded_from_a_file_it_goes_on_as_it_would_have(fused):
    first, second = weights(), weights()
    before, after = (Adam(some, 1e-2, fused=fused) for some in (first, second))
    train(first, before, (1e-2,) * 3, ours)
    # A file keeps shapes and values, not how memory is laid out.
    saved = {name: value.clone().contiguous() for name, value in before.named_state().items()}
    assert {name.partition("/")[0] for name in saved} == {"0", "1"}
    after.load_named_state(saved)
    for left, right in zip(first, second, strict=True):
        right.data.copy_(left)
    assert after.state[second[0]]["exp_avg"].stride() == second[0].stride()
    assert second[2] not in after.state
    train(first, before, (1e-3,) * 2, ours)
    train(second, after, (1e-3,) * 2, ours)
    for left, right in zip(first, second, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("of_rate", [float, torch.tensor])
def test_slower_parameters_move_as_by_a_lower_rate(fused, of_rate):
    """Each as an Adam of its own with its own rate would move it."""
    together, fast, slow = weights(), weights(), weights()
    both = Adam(together[:2], of_rate(0.1), fused=fused, slower=together[:1], factor=0.25)
    apart = [Adam(fast[1:2], 0.1, fused=fused), Adam(slow[:1], 0.025, fused=fused)]
    drawn = torch.Generator().manual_seed(1)
    for _ in range(3):
        gradients = [torch.empty_like(weight).normal_(generator=drawn) for weight in together[:2]]
        for weight, gradient in zip(together[:2], gradients, strict=True):
            weight.grad = gradient
        fast[1].grad, slow[0].grad = gradients[1].clone(), gradients[0].clone()
        for optimiser in (both, *apart):
            optimiser.step()
    torch.testing.assert_close(together[0], slow[0])
    torch.testing.assert_close(together[1], fast[1])


def test_a_checkpoint_of_the_flat_adam_goes_on():
    """Until 0.2 weights that train together had one count of steps on CUDA, and all had moments
    from the start, those too that never had a gradient. The names in the file were these."""
    drawn = torch.Generator().manual_seed(2)
    found, expected = weights(), weights()
    saved = {}
    for number, weight in enumerate(found):
        rests = number == 2
        saved[f"{number}/step"] = torch.tensor(0.0 if rests else 7.0)
        for name in ("exp_avg", "exp_avg_sq"):
            moments = torch.rand(weight.shape, generator=drawn)
            saved[f"{number}/{name}"] = moments.zero_() if rests else moments
    adam = Adam(found, torch.tensor(1e-2), fused=True)
    adam.load_named_state(saved)
    reference = torch.optim.Adam(expected, lr=1e-2)
    state = reference.state_dict()
    for key, value in saved.items():
        number, _, name = key.partition("/")
        state["state"].setdefault(int(number), {})[name] = value
    reference.load_state_dict(state)
    for optimiser, some in ((adam, found), (reference, expected)):
        drawn.manual_seed(3)
        for _ in range(2):
            for weight in some:
                weight.grad = torch.empty_like(weight).normal_(generator=drawn)
            optimiser.step()
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right)


def test_constant_stays_and_cosine_falls_from_one_to_nothing():
    at = lambda schedule, epoch: learning_rate_factor(schedule, epoch, 10)  # noqa: E731
    assert [at("constant", epoch) for epoch in (0, 3.5, 10)] == [1, 1, 1]
    assert [at("cosine", epoch) for epoch in (0, 5, 10)] == pytest.approx([1, 0.5, 0])
    assert at("cosine", 2.5) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


def test_an_unknown_schedule_is_named():
    with pytest.raises(ValueError, match="'linear'"):
        learning_rate_factor("linear", 0, 1)
