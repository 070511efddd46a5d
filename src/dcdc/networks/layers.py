"""Layers that networks share: normalisation, Sobel filter, grid, dense layer, projection head; and
the EMA target.

Shapes: B images, C channels (1 or 3), H x W pixels in [0, 1].
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_FEWEST_ROWS = 16  # of a dense product


class Normalise(nn.Module):
    """Subtracts a mean and divides by a deviation per channel."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        if len(mean) != len(std) or any(not value > 0 for value in std):
            raise ValueError(f"need one mean and one positive std per channel, got {mean}, {std}")
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std


class Sobel(nn.Module):
    """Grey as the plain mean of the channels, then its horizontal and vertical Sobel edges."""

    out_channels = 2

    def __init__(self) -> None:
        super().__init__()
        across = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
        self.kernels: Tensor
        self.register_buffer("kernels", torch.stack([across, across.T]).unsqueeze(1))

    def forward(self, images: Tensor) -> Tensor:
        return F.conv2d(images.mean(dim=1, keepdim=True), self.kernels, padding=1)


def front(images: Tensor, normalise: Normalise, sobel: Sobel | None) -> Tensor:
    """What the backbone reads, in any layout, in full precision: under autocast a convolution would
    round the grey image before it takes its edges."""
    with torch.autocast(images.device.type, enabled=False):
        x: Tensor = normalise(images)
        return x if sobel is None else sobel(x)


def resized(images: Tensor, side: int) -> Tensor:
    """To `side` x `side`, as the preprocessing of pretrained backbones does it."""
    if images.shape[-1] == side:
        return images
    return F.interpolate(images, (side, side), mode="bicubic", antialias=True).clamp(0, 1)


class Grid(nn.Module):
    """Average pooling to a grid; nothing to do (and a tenth of the step saved) where it fits."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[-2:] == (self.side,) * 2 else F.adaptive_avg_pool2d(x, self.side)


class Dense(nn.Linear):
    """As nn.Linear; in evaluation a row's answer is the same, bit for bit, whatever is beside it.

    A product of few rows adds up in another order than one of many, so a few are made many.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.compiler.is_compiling() or len(x) >= _FEWEST_ROWS:
            return super().forward(x)
        return super().forward(F.pad(x, (0, 0, 0, _FEWEST_ROWS - len(x))))[: len(x)]


def projection_head(n_features: int, n_projected: int) -> nn.Sequential:
    """SimCLR's two layers between features and contrast: what the contrast throws away, features
    keep."""
    return nn.Sequential(
        nn.Linear(n_features, n_features), nn.ReLU(), nn.Linear(n_features, n_projected)
    )


class EmaTarget(nn.Module):
    """Its weights are buffers, so that checkpoints have them and optimisers do not."""

    def __init__(self, followed: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(followed)
        for module in self.network.modules():
            for name, weight in list(module.named_parameters(recurse=False)):
                delattr(module, name)
                module.register_buffer(name, weight.detach())

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y: Tensor = self.network(x)
        return y

    @torch.no_grad()
    def follow(self, followed: nn.Module, momentum: float) -> None:
        """Every weight becomes `momentum` of itself and `1 - momentum` of the network's."""
        own = dict(self.network.named_buffers())
        weights = dict(followed.named_parameters())
        torch._foreach_lerp_([own[name] for name in weights], list(weights.values()), 1 - momentum)

    @torch.no_grad()
    def catch_up(self, followed: nn.Module) -> None:
        """The same weights and statistics, here and now."""
        self.network.load_state_dict(followed.state_dict())
