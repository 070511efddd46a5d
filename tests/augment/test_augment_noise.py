import torch
from scipy.stats import kstest

from dcdc.augment import apply_noise, draw_noise


def test_adds_and_clamps():
    images = torch.tensor([0.0, 0.2, 0.9]).view(3, 1, 1, 1)
    noise = torch.tensor([-0.5, 0.25, 0.5]).view(3, 1, 1, 1)
    torch.testing.assert_close(apply_noise(images, noise).flatten(), torch.tensor([0, 0.45, 1]))
    assert torch.equal(images.flatten(), torch.tensor([0.0, 0.2, 0.9]))


def test_every_pixel_has_its_own_normal_value():
    noise = draw_noise((10, 3, 16, 12), 0.1, torch.Generator().manual_seed(0))
    assert noise.shape == (10, 3, 16, 12)
    assert kstest(noise.flatten().numpy() / 0.1, "norm").pvalue > 1e-3
    assert noise.unique().numel() > 0.99 * noise.numel()
    assert torch.equal(noise, draw_noise((10, 3, 16, 12), 0.1, torch.Generator().manual_seed(0)))
