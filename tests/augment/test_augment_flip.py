import pytest
import torch
from scipy.stats import binomtest

from dcdc.augment import apply_flip, draw_flip


@pytest.mark.parametrize("channels", [1, 3])
def test_only_the_chosen_are_mirrored(channels):
    images = torch.rand(4, channels, 5, 8, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([True, False, False, True])
    out = apply_flip(images, chosen)
    assert torch.equal(out[1:3], images[1:3])
    for column in range(8):
        assert torch.equal(out[chosen][..., column], images[chosen][..., 7 - column])
    assert torch.equal(apply_flip(out, chosen), images)


@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 1.0])
def test_probability(p):
    chosen = draw_flip(10_000, p, torch.Generator().manual_seed(1))
    assert binomtest(int(chosen.sum()), 10_000, p).pvalue > 1e-3
    assert torch.equal(chosen, draw_flip(10_000, p, torch.Generator().manual_seed(1)))
