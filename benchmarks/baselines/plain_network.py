"""The reference's network in torch's own layers, whatever becomes of those in `dcdc.networks`."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.config import RunConfig
from dcdc.errors import InputError

_RESNETS = {"resnet34": (3, 4, 6, 3), "resnet18": (2, 2, 2, 2)}


def build_plain_network(config: RunConfig) -> "PlainNetwork":
    """With the cluster head alone, from a resolved config."""
    network = config.network
    assert config.n_clusters is not None
    assert network.mean is not None
    return PlainNetwork(network.backbone, len(network.mean), config.n_clusters, sobel=network.sobel)


class PlainNetwork(nn.Module):
    """Normalised images, B x C x H x W, to the assignments of one head, B x K."""

    def __init__(self, backbone: str, in_channels: int, n_clusters: int, *, sobel: bool) -> None:
        super().__init__()
        self.sobel = sobel
        across = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
        self.edges: Tensor
        self.register_buffer("edges", torch.stack([across, across.T])[:, None])
        seen_channels = 2 if sobel else in_channels
        self.backbone: nn.Module
        if backbone == "small":
            self.backbone, n_features = _small(seen_channels), 256
        elif backbone not in _RESNETS:
            raise InputError(f"the reference has no {backbone}: leave it out by --what steps")
        else:
            self.backbone, n_features = _resnet(seen_channels, _RESNETS[backbone]), 512
        self.head = nn.Linear(n_features, n_clusters)

    def forward(self, images: Tensor) -> Tensor:
        if self.sobel:
            images = F.conv2d(images.mean(1, keepdim=True), self.edges, padding=1)
        return torch.softmax(self.head(self.backbone(images)), 1)


class _Block(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: Tensor) -> Tensor:
        residual = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)), inplace=True)))
        return F.relu(residual + self.shortcut(x), inplace=True)


def _resnet(in_channels: int, n_blocks: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(in_channels, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, 2, padding=1),
    ]
    width = 64
    for stage, n_of_stage in enumerate(n_blocks):
        for block in range(n_of_stage):
            layers.append(_Block(width, 64 * 2**stage, 2 if stage and not block else 1))
            width = 64 * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _small(in_channels: int) -> nn.Sequential:
    return nn.Sequential(
        *_convolution(in_channels, 32),
        *_convolution(32, 64),
        nn.MaxPool2d(2),
        *_convolution(64, 64),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 256, bias=False),
        nn.BatchNorm1d(256),
        nn.ReLU(inplace=True),
    )


def _convolution(in_channels: int, out_channels: int) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )
