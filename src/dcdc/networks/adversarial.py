"""DCGAN's two networks.

Radford, Metz and Chintala, Unsupervised representation learning with deep convolutional generative
adversarial networks, 2016. Every layer halves or doubles its maps by its stride; there is no
pooling. For square images of 8 to some hundred pixels a side. Shapes: B images, C channels, S
pixels a side, D numbers of an image.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.generative import widths_of

KERNEL = 4
SMALLEST_GRID = 4
FEWEST_LAYERS = 2
SLOPE = 0.2  # of leaky ReLUs
DEVIATION = 0.02  # of weights at first


def strided_sides(side: int) -> tuple[int, ...]:
    """The sides of the maps, each half of the one before: 32, 16, 8, 4. No smaller than 4, but
    that there are two layers at least: 8, 4, 2."""
    sides = [side]
    while sides[-1] // 2 >= SMALLEST_GRID or (len(sides) <= FEWEST_LAYERS and sides[-1] > 1):
        sides.append(sides[-1] // 2)
    return tuple(sides)


@torch.no_grad()
def initialise(network: nn.Module) -> None:
    """Weights are Gaussian around 0, gains of norms around 1, of deviation .02; biases are 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear | nn.BatchNorm2d):
            middle = 1.0 if isinstance(module, nn.BatchNorm2d) else 0.0
            nn.init.normal_(module.weight, middle, DEVIATION)
            assert module.bias is not None
            nn.init.zeros_(module.bias)


class Generator(nn.Module):
    """B x `n_noise` to images in [0, 1], B x C x S x S."""

    def __init__(self, n_noise: int, out_channels: int, side: int, width: int) -> None:
        super().__init__()
        *sides, grid = strided_sides(side)
        widths = widths_of(width, len(sides))
        self.grid = (widths[-1], grid, grid)
        self.start = nn.Linear(n_noise, widths[-1] * grid**2)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n_maps) for n_maps in reversed(widths))
        self.layers = nn.ModuleList(
            nn.ConvTranspose2d(
                *(before, after, KERNEL),
                stride=2,
                padding=1,
                output_padding=wanted % 2,
            )
            for (before, after), wanted in zip(
                pairwise([*reversed(widths), out_channels]), reversed(sides), strict=True
            )
        )
        initialise(self)

    def forward(self, noise: Tensor) -> Tensor:
        x = self.start(noise).view(-1, *self.grid)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = layer(torch.relu(norm(x)))
        return (torch.tanh(x) + 1) / 2


class Discriminator(nn.Module):
    """Images in [0, 1] to a logit each: above 0 where it takes them for real."""

    def __init__(self, in_channels: int, side: int, width: int) -> None:
        super().__init__()
        sides = strided_sides(side)
        widths = widths_of(width, len(sides) - 1)
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, KERNEL, stride=2, padding=1)
            for before, after in pairwise([in_channels, *widths])
        )
        # No norm beside the pixels.
        self.norms = nn.ModuleList(nn.BatchNorm2d(n_maps) for n_maps in widths[1:])
        self.logit = nn.Linear(widths[-1] * sides[-1] ** 2, 1)
        initialise(self)

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

    def features(self, images: Tensor, grid: int = SMALLEST_GRID) -> Tensor:
        """Every layer's maps, the greatest of each field of a grid, one after the other: B x D.
        Maps that are as small as the grid, or smaller, are taken as they are."""
        pooled = [
            F.adaptive_max_pool2d(maps, grid) if maps.shape[-1] > grid else maps
            for maps in self.maps(images)
        ]
        return torch.cat([maps.flatten(1) for maps in pooled], dim=1)
