"""What a convolutional network sees before it has learnt anything.

Shapes: B images, C channels, S pixels a side, F numbers of an image.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.autoencoder import halvings, widths_of
from dcdc.networks.evened import LocalContrast
from dcdc.networks.front import Normalise


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
