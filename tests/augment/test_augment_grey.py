import pytest
import torch
from scipy.stats import binomtest

from dcdc.augment import apply_grey, draw_grey


def test_only_the_chosen_turn_grey():
    images = torch.rand(4, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([True, False, True, False])
    out = apply_grey(images, chosen)
    assert torch.equal(out[~chosen], images[~chosen])
    for image, grey in zip(images[chosen], out[chosen], strict=True):
        for row in range(5):
            for column in range(7):
                red, green, blue = image[:, row, column].tolist()
                expected = 0.2989 * red + 0.587 * green + 0.114 * blue
                assert grey[:, row, column].tolist() == pytest.approx([expected] * 3, abs=1e-6)


def test_grey_of_grey_is_grey():
    images = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    once = apply_grey(images, torch.ones(2, dtype=torch.bool))
    twice = apply_grey(once, torch.ones(2, dtype=torch.bool))
    torch.testing.assert_close(once, twice, atol=1.1e-4, rtol=0)  # the weights sum to .9999


def test_one_channel_is_grey_already():
    images = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(2))
    assert torch.equal(apply_grey(images, torch.tensor([True, False])), images)


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_probability(p):
    chosen = draw_grey(10_000, p, torch.Generator().manual_seed(3))
    assert binomtest(int(chosen.sum()), 10_000, p).pvalue > 1e-3
    assert torch.equal(chosen, draw_grey(10_000, p, torch.Generator().manual_seed(3)))
