"""Images to points: an encoder by itself. Shapes: B images, D numbers of an embedding."""

from collections.abc import Sequence

from torch import Tensor, nn

from dcdc.networks.generative import Encoder
from dcdc.networks.layers import Normalise
from dcdc.runtime.device import autocast, usual_precision


class Embedding(nn.Module):
    """Images in [0, 1], B x C x S x S, to B x D; products on a GPU are bfloat16."""

    def __init__(
        self,
        in_channels: int,
        side: int,
        n_embedded: int,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        width: int,
    ) -> None:
        super().__init__()
        self.normalise = Normalise(mean, std)
        self.encoder = Encoder(in_channels, side, n_embedded, width)

    def forward(self, images: Tensor) -> Tensor:
        with autocast(images.device, usual_precision(images.device)):
            points: Tensor = self.encoder(self.normalise(images))
        return points.float()
