import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from dcdc.losses import gaussian_divergence


def random_codes(n_images=4, n_code=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, n_images, n_code, generator=generator, dtype=torch.float64).unbind()


def test_as_the_slow_loop_has_it():
    mean, log_variance = random_codes()
    total = 0.0
    for image in range(4):
        for number in range(3):
            m, v = mean[image, number].item(), math.exp(log_variance[image, number].item())
            total += (m * m + v - 1 - math.log(v)) / 2
    assert gaussian_divergence(mean, log_variance).item() == pytest.approx(total / 4, rel=1e-12)


def test_as_torch_s_distributions_have_it():
    mean, log_variance = random_codes()
    wanted = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(gaussian_divergence(mean, log_variance), wanted)


def test_it_is_nothing_for_the_standard_gaussian_alone():
    zeros = torch.zeros(5, 2)
    assert gaussian_divergence(zeros, zeros) == 0
    for changed in (zeros + 0.1, zeros - 0.1):
        assert gaussian_divergence(changed, zeros) > 0
        assert gaussian_divergence(zeros, changed) > 0


def test_gradient_is_the_slope():
    codes = tuple(part.requires_grad_() for part in random_codes())
    assert torch.autograd.gradcheck(gaussian_divergence, codes)
