"""A small backbone for tiny images (digits and the like), quick on a laptop's CPU."""

from torch import Tensor, nn

from dcdc.networks.backbones import Backbone
from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d
from dcdc.networks.dense import Dense
from dcdc.networks.grid import Grid


class SmallBackbone(nn.Module):
    """Three 3x3 layers, a 4x4 grid, and a dense layer of 256 features.

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
