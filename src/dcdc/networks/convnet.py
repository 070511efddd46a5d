"""A plain convolutional network for photos of some 32 pixels, as clustering had before ResNets.

Six 3x3 convolutions, two at each size, and a dense layer; DAC's and DCCM's are of this kind (Chang
et al., 2017; Wu et al., 2019).
"""

from torch import nn

from dcdc.networks.backbones import Backbone
from dcdc.networks.convolution import Convolution
from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d
from dcdc.networks.layers import Dense, Grid
from dcdc.networks.local_maps import ShowsMaps

WIDTHS = (64, 64, 128, 128, 256, 256)
GRID = 4


class ConvNet(ShowsMaps):
    """Its maps are those of the second size, a quarter of the image's side."""

    n_maps, n_features = WIDTHS[3], 512
    up_to_maps = 10

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for number, width in enumerate(WIDTHS):
            layers += [Convolution(in_channels, width, 3), CopyGroupNorm(width)]
            if number % 2:
                layers.append(nn.MaxPool2d(2))
            in_channels = width
        self.layers = nn.Sequential(
            *layers,
            Grid(GRID),
            nn.Flatten(),
            Dense(WIDTHS[-1] * GRID**2, self.n_features, bias=False),
            CopyGroupNorm1d(self.n_features),
        )


CONVNET = Backbone(ConvNet)
