"""Convolutional autoencoders, and what their encoder sees untrained.

For square images of 8 to some hundred pixels a side. Shapes: B images, C channels, S pixels a side,
D numbers of a code, F numbers of an image.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.convolution import Convolution
from dcdc.networks.copy_group_norm import CopyGroupNorm
from dcdc.networks.layers import Normalise
from dcdc.networks.resnet import BasicBlock
from dcdc.networks.whitening import LocalContrast
from dcdc.runtime.device import autocast, usual_precision

SMALLEST_GRID = 4


def halvings(side: int) -> tuple[int, ...]:
    """The sides of the maps, from the image's own down to a grid of at most 4: 32, 16, 8, 4."""
    sides = [side]
    while sides[-1] > SMALLEST_GRID:
        sides.append((sides[-1] + 1) // 2)
    return tuple(sides)


class Encoder(nn.Module):
    """B x C x S x S to B x `n_outputs`: a stem, a layer of stride 2 per halving, a dense layer."""

    def __init__(self, in_channels: int, side: int, n_outputs: int, width: int) -> None:
        super().__init__()
        sides = halvings(side)
        widths = widths_of(width, len(sides))
        layers = [_layer(nn.Conv2d(in_channels, widths[0], 3, padding=1, bias=False))]
        for before, after in pairwise(widths):
            layers.append(_layer(nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)))
        self.maps = nn.Sequential(*layers)
        self.code = nn.Linear(widths[-1] * sides[-1] ** 2, n_outputs)

    def features(self, x: Tensor) -> Tensor:
        """What the dense layer sees: each map, place by place."""
        found: Tensor = self.maps(x).flatten(1)
        return found

    def forward(self, x: Tensor) -> Tensor:
        code: Tensor = self.code(self.features(x))
        return code


class PooledEncoder(nn.Module):
    """As Encoder, with residual blocks, and the means of the maps before the dense layer.

    A mean does not know where in a photo a thing is.
    """

    def __init__(self, in_channels: int, side: int, n_outputs: int, width: int) -> None:
        super().__init__()
        widths = widths_of(width, len(halvings(side)))
        self.stem = Convolution(in_channels, widths[0], 3)
        self.norm = CopyGroupNorm(widths[0])
        self.blocks = nn.Sequential(*(BasicBlock(*pair, stride=2) for pair in pairwise(widths)))
        self.code = nn.Linear(widths[-1], n_outputs)

    def features(self, x: Tensor) -> Tensor:
        maps, _ = self.blocks(self.norm(self.stem(x), fork=True))
        return F.adaptive_avg_pool2d(maps, 1).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        code: Tensor = self.code(self.features(x))
        return code


class Decoder(nn.Module):
    """The encoder's mirror image: B x D to B x C x S x S."""

    def __init__(self, n_code: int, out_channels: int, side: int, width: int) -> None:
        super().__init__()
        sides = halvings(side)
        widths = widths_of(width, len(sides))
        self.grid = (widths[-1], sides[-1], sides[-1])
        self.code = nn.Linear(n_code, widths[-1] * sides[-1] ** 2)
        layers: list[nn.Module] = []
        for level in reversed(range(len(sides) - 1)):
            odd = sides[level] % 2
            layers.append(
                _layer(
                    nn.ConvTranspose2d(
                        *(widths[level + 1], widths[level], 3),
                        stride=2,
                        padding=1,
                        output_padding=1 - odd,
                        bias=False,
                    )
                )
            )
        layers.append(nn.Conv2d(widths[0], out_channels, 3, padding=1))
        self.maps = nn.Sequential(*layers)

    def forward(self, code: Tensor) -> Tensor:
        grid = torch.relu(self.code(code)).view(-1, *self.grid)
        images: Tensor = self.maps(grid)
        return images


class Autoencoder(nn.Module):
    """Images in [0, 1] to codes and back to images as they are wanted.

    Products on a GPU are bfloat16; codes and images are float32.
    """

    def __init__(
        self,
        in_channels: int,
        side: int,
        n_code: int,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        width: int = 32,
        pooled: bool = False,
        evened: nn.Module | None = None,
        n_encoded: int | None = None,
    ) -> None:
        """`evened` makes of normalised images what shall be made again; None: they themselves.
        `n_encoded` numbers leave the encoder, where they are not the code itself."""
        super().__init__()
        self.normalise = Normalise(mean, std)
        self.evened = nn.Identity() if evened is None else evened
        kind = PooledEncoder if pooled else Encoder
        self.encoder = kind(in_channels, side, n_encoded or n_code, width)
        self.decoder = Decoder(n_code, in_channels, side, width)

    def encode(self, images: Tensor) -> Tensor:
        """B x D"""
        with _half(images):
            code: Tensor = self.encoder(self.normalise(images))
        return code.float()

    def features(self, images: Tensor) -> Tensor:
        """B x F: what the code is made of."""
        with _half(images):
            return self.encoder.features(self.normalise(images)).float()

    def decode(self, codes: Tensor) -> Tensor:
        """B x C x S x S, to be compared with `wanted`."""
        with _half(codes):
            images: Tensor = self.decoder(codes)
        return images.float()

    @torch.no_grad()
    def wanted(self, images: Tensor) -> Tensor:
        """B x C x S x S"""
        found: Tensor = self.evened(self.normalise(images))
        return found


class VariationalAutoencoder(Autoencoder):
    """Codes are Gaussian: a mean and the logarithm of a variance for each of their numbers."""

    def __init__(self, in_channels: int, side: int, n_code: int, **settings: object) -> None:
        super().__init__(in_channels, side, n_code, n_encoded=2 * n_code, **settings)  # type: ignore[arg-type]

    def encode(self, images: Tensor) -> Tensor:
        """B x D: the means."""
        return self.distribution(images)[0]

    def distribution(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Means and logarithms of variances, B x D each."""
        mean, log_variance = super().encode(images).chunk(2, dim=1)
        return mean, log_variance


def _half(x: Tensor) -> AbstractContextManager[object]:
    return autocast(x.device, usual_precision(x.device))


def widths_of(first: int, n_levels: int) -> list[int]:
    return [first * min(2**level, 8) for level in range(n_levels)]


def _layer(convolution: nn.Conv2d | nn.ConvTranspose2d) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU())


class UntrainedMaps(nn.Module):
    """Convolutions as an autoencoder's encoder has them, with the weights they start with."""

    def __init__(
        self,
        in_channels: int,
        side: int,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        width: int,
        evened: bool,
    ) -> None:
        super().__init__()
        widths = widths_of(width, len(halvings(side)))
        self.normalise = Normalise(mean, std)
        self.evened = LocalContrast() if evened else nn.Identity()
        pairs = pairwise((in_channels, *widths))
        self.layers = nn.ModuleList(
            nn.Conv2d(*pair, 3, stride=2 if level else 1, padding=1, bias=False)
            for level, pair in enumerate(pairs)
        )

    def features(self, images: Tensor, grid: int = 2) -> Tensor:
        """B x F: how strong every map is in each field of a grid. The root evens out: one strong
        answer is no more than a few."""
        maps, found = self.evened(self.normalise(images)), []
        for layer in self.layers:
            maps = torch.relu(layer(maps))
            found.append(F.adaptive_avg_pool2d(maps, grid).flatten(1).sqrt())
        return torch.cat(found, dim=1)
