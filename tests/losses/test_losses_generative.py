"""Losses of networks that make images, against slow loops and at their edges."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from dcdc.losses import (
    discriminator_loss,
    gaussian_divergence,
    generator_loss,
    reconstruction_loss,
)


def test_reconstruction_is_as_the_slow_loop_has_it():
    made, images = torch.randn(2, 3, 2, 4, 4, dtype=torch.float64).unbind()
    total = 0.0
    for image in range(3):
        for value, wanted in zip(
            made[image].flatten().tolist(), images[image].flatten().tolist(), strict=True
        ):
            total += (value - wanted) ** 2 / 2
    assert reconstruction_loss(made, images).item() == pytest.approx(total / 3, rel=1e-12)


def test_nothing_is_lost_where_all_is_made_again():
    images = torch.rand(3, 1, 8, 8)
    assert reconstruction_loss(images, images) == 0


def test_half_precision_is_lifted_and_gradients_are_right():
    made = torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    images = torch.randn(2, 1, 3, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: reconstruction_loss(x, images), (made,))
    assert reconstruction_loss(made.bfloat16(), images.bfloat16()).dtype == torch.float32


def test_another_shape_is_named():
    with pytest.raises(ValueError, match=r"\(2, 1, 8, 8\) were reconstructed as \(2, 1, 7, 7\)"):
        reconstruction_loss(torch.rand(2, 1, 7, 7), torch.rand(2, 1, 8, 8))


def random_codes(n_images=4, n_code=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, n_images, n_code, generator=generator, dtype=torch.float64).unbind()


def test_divergence_is_as_the_slow_loop_has_it():
    mean, log_variance = random_codes()
    total = 0.0
    for image in range(4):
        for number in range(3):
            m, v = mean[image, number].item(), math.exp(log_variance[image, number].item())
            total += (m * m + v - 1 - math.log(v)) / 2
    assert gaussian_divergence(mean, log_variance).item() == pytest.approx(total / 4, rel=1e-12)


def test_divergence_is_as_torch_s_distributions_have_it():
    mean, log_variance = random_codes()
    wanted = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(gaussian_divergence(mean, log_variance), wanted)


def test_divergence_is_nothing_for_the_standard_gaussian_alone():
    zeros = torch.zeros(5, 2)
    assert gaussian_divergence(zeros, zeros) == 0
    for changed in (zeros + 0.1, zeros - 0.1):
        assert gaussian_divergence(changed, zeros) > 0
        assert gaussian_divergence(zeros, changed) > 0


def test_gradient_of_the_divergence_is_its_slope():
    codes = tuple(part.requires_grad_() for part in random_codes())
    assert torch.autograd.gradcheck(gaussian_divergence, codes)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_adversaries_are_as_the_slow_loops_have_them():
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


def test_losses_of_extreme_logits_stay_finite():
    logits = torch.tensor([1e4, -1e4], requires_grad=True)
    loss = discriminator_loss(logits, logits) + generator_loss(logits)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()
