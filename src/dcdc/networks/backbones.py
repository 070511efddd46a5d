"""Backbones by name: images, B x C x H x W, to features, B x D.

    BACKBONES.register("my-net", Backbone(lambda in_channels: MyNet(in_channels)))

A backbone is any `nn.Module` with an attribute `n_features`. Batch norms are converted to
statistics per copy group, so that original and perturbed copies do not mix.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d, convert_copy_group_norm
from dcdc.networks.layers import Dense, Grid
from dcdc.registry import Registry


@dataclass(frozen=True)
class Backbone:
    build: Callable[[int], nn.Module]
    """Of the number of channels it is given."""
    suits_cpu: bool = False
    """Whether a CPU trains it in minutes."""


BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    "dcdc.backbones",
    {
        "resnet34": "dcdc.networks.resnet:RESNET34",
        "resnet18": "dcdc.networks.resnet:RESNET18",
        "resnet34-unpooled": "dcdc.networks.resnet:RESNET34_UNPOOLED",
        "resnet18-unpooled": "dcdc.networks.resnet:RESNET18_UNPOOLED",
        "small": "dcdc.networks.backbones:SMALL",
        "patches": "dcdc.networks.patches:PATCHES",
    },
)


def build_backbone(name: str, in_channels: int) -> nn.Module:
    return convert_copy_group_norm(BACKBONES.get(name).build(in_channels))


class SmallBackbone(nn.Module):
    """For digits and the like: three 3x3 layers, a 4x4 grid, and a dense layer of 256 features.

    The dense layer over the grid, unlike an average, knows where a stroke is: a 6 is not a 9.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.n_features = 256
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, 32, 3, padding=1, bias=False),
            CopyGroupNorm(32),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            CopyGroupNorm(64),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1, bias=False),
            CopyGroupNorm(64),
            Grid(4),
            nn.Flatten(),
            Dense(64 * 4 * 4, self.n_features, bias=False),
            CopyGroupNorm1d(self.n_features),
        )

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features


SMALL = Backbone(SmallBackbone, suits_cpu=True)
