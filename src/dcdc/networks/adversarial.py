"""DCGAN's two networks for images of any side: one makes images, the other tells them from real.

Radford, Metz and Chintala, Unsupervised representation learning with deep convolutional generative
adversarial networks, 2016. Shapes: B images, C channels, S pixels a side.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.autoencoder import Decoder, halvings, widths_of

SLOPE = 0.2


class Generator(nn.Module):
    """B x `n_noise` to images in [0, 1], B x C x S x S."""

    def __init__(self, n_noise: int, out_channels: int, side: int, width: int) -> None:
        super().__init__()
        self.n_noise = n_noise
        self.decoder = Decoder(n_noise, out_channels, side, width)

    def forward(self, noise: Tensor) -> Tensor:
        return torch.sigmoid(self.decoder(noise))


class Discriminator(nn.Module):
    """Images in [0, 1] to a logit each: above 0 where it takes them for real."""

    def __init__(self, in_channels: int, side: int, width: int) -> None:
        super().__init__()
        sides = halvings(side)
        widths = widths_of(width, len(sides))
        layers = [nn.Conv2d(in_channels, widths[0], 3, padding=1)]  # no norm beside the pixels
        for before, after in pairwise(widths):
            layers.append(nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False))
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(nn.BatchNorm2d(after) for after in widths[1:])
        self.logit = nn.Linear(widths[-1] * sides[-1] ** 2, 1)

    def maps(self, images: Tensor) -> list[Tensor]:
        """What each layer makes of the images."""
        first, *others = self.layers
        found = [F.leaky_relu(first(2 * images - 1), SLOPE)]
        for layer, norm in zip(others, self.norms, strict=True):
            found.append(F.leaky_relu(norm(layer(found[-1])), SLOPE))
        return found

    def forward(self, images: Tensor) -> Tensor:
        """B"""
        logits: Tensor = self.logit(self.maps(images)[-1].flatten(1))
        return logits.squeeze(1)

    def features(self, images: Tensor, grid: int) -> Tensor:
        """Every layer's maps, the greatest of each field of a grid, one after the other: B x D."""
        pooled = [F.adaptive_max_pool2d(maps, grid) for maps in self.maps(images)]
        return torch.cat([maps.flatten(1) for maps in pooled], dim=1)
