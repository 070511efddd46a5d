"""What may be folded and written over, and what may not."""

import pytest
import torch
from torch import nn

from dcdc.networks import convert_copy_group_norm
from dcdc.networks.pretrained import folding, frozen_for_inference


class Plain(nn.Module):
    n_features = 4

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()

    def forward(self, x):
        return self.relu(self.norm(self.conv(x))).mean((2, 3))


class TwoReaders(Plain):
    """The convolution's output is read again, and so is the norm's."""

    def forward(self, x):
        made = self.conv(x)
        normed = self.norm(made)
        return (self.relu(normed) + normed + made).mean((2, 3))


class CalledTwice(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.n_features = 3

    def forward(self, x):
        return self.relu(self.norm(self.conv(self.norm(self.conv(x))))).mean((2, 3))


class ActivationOfAnInput(Plain):
    """The activation reads what a sum made and, later, what the caller gave."""

    def forward(self, x):
        made = self.norm(self.conv(x))
        return (self.relu(made + 1) * made).mean((2, 3)) + self.relu(x).mean()


class NormWithMore(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x).sigmoid()


class OwnNorm(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.norm = NormWithMore(4)


class ByValue(Plain):
    """Its path depends on the pixels, so that it has no one graph."""

    def forward(self, x):
        return super().forward(x if x.mean() > 0 else -x)


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize(
    ("kind", "folds"),
    [
        *[(Plain, True), (TwoReaders, False), (CalledTwice, False), (ActivationOfAnInput, True)],
        *[(OwnNorm, False), (ByValue, False)],
    ],
)
def test_features_stay_the_same(kind, folds, convert):
    torch.manual_seed(0)
    module = convert_copy_group_norm(kind()) if convert else kind()
    for _ in range(3):
        module(torch.randn(8, 3, 6, 6) * 2 + 1)  # statistics that are not 0 and 1
    module.eval()
    images = torch.randn(5, 3, 6, 6)
    given = images.clone()
    with torch.no_grad():
        expected = module(images)
        frozen = frozen_for_inference(module)
        torch.testing.assert_close(frozen(images), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(images, given)
    assert folds == (not any(isinstance(part, nn.BatchNorm2d) for part in frozen.modules()))
    assert frozen.n_features == module.n_features
    assert isinstance(module.norm, nn.BatchNorm2d)


def test_a_large_batch_goes_through_in_parts(monkeypatch):
    module = Plain().eval()
    frozen = frozen_for_inference(module)
    seen = []
    frozen.module.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    monkeypatch.setattr(folding, "PIXELS_AT_ONCE", 3 * 6 * 6 // 2 + 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    images = torch.rand(8, 3, 6, 6)
    with torch.no_grad():
        torch.testing.assert_close(frozen(images), module(images))
    assert seen == [3, 3, 2]
