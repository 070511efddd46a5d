"""A backbone for photos on a CPU: which patches of a dictionary an image has, and where.

Coates, Ng and Lee, An analysis of single-layer networks in unsupervised feature learning, 2011. The
dictionary is not trained by gradients but found before training (engine/patch_dictionary.py);
training moves the dense layer alone. Shapes: B images, C channels, K patches, D features.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.backbones import Backbone
from dcdc.networks.layers import Dense, Grid

SIDE, STRIDE, PADDING = 6, 2, 2
"""Pixels: of a patch, between patches, and of nothing around an image."""
N_PATCHES = 400
N_FEATURES = 64
FEWEST = 3e-3
"""Variance that is added to a patch's own, in units of the set's: a plain sky has no structure."""
THRESHOLD = 1.0
"""What an answer has to be above to count, in units of a whitened patch's own deviation."""
QUARTERS = 2
_FEW = 32
"""Images whose maps stay in a core's cache: twice as fast as a batch at once."""


class PatchBackbone(nn.Module):
    """Answers of whitened patches, above a threshold, averaged over the image's quarters."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.n_features = N_FEATURES
        self.filters: Tensor
        self.register_buffer("filters", torch.randn(N_PATCHES, in_channels, SIDE, SIDE) / SIDE)
        self.offsets: Tensor
        self.register_buffer("offsets", torch.zeros(N_PATCHES))
        self.grid = Grid(QUARTERS)
        self.dense = Dense(N_PATCHES * QUARTERS**2, N_FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """B x D, of length 1: how much structure an image has says little about what it shows."""
        return F.normalize(self.dense(self.answers(x)), dim=1)

    def answers(self, x: Tensor) -> Tensor:
        """B x 4K"""
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return self._answers(x)
        return torch.cat([self._answers(few) for few in torch.split(x, _FEW)])

    def _answers(self, x: Tensor) -> Tensor:
        """The root evens out, so that one strong answer is no more than a few."""
        found = F.conv2d(x, self.filters, stride=STRIDE, padding=PADDING)
        found.div_(_deviations(x)).add_((self.offsets - THRESHOLD)[:, None, None]).relu_()
        pooled: Tensor = self.grid(found)
        return pooled.flatten(1).sqrt()

    @torch.no_grad()
    def take_dictionary(self, whitened: Tensor, whitening: Tensor, middle: Tensor) -> None:
        """`whitened`: K patches, K x P with P = C x SIDE x SIDE; `whitening`: P x P, which makes
        `whitened` of patches less `middle`."""
        units = F.normalize(whitened, dim=1) @ whitening
        self.offsets.copy_(-(units @ middle))
        # What is taken from a filter's mean need not be taken from every patch's.
        self.filters.copy_((units - units.mean(dim=1, keepdim=True)).view_as(self.filters))


def even_patches(x: Tensor) -> Tensor:
    """B x L x P: all L patches of each image, of mean 0 and about deviation 1."""
    patches = F.unfold(x, SIDE, stride=STRIDE, padding=PADDING).transpose(1, 2)
    away = patches - patches.mean(dim=2, keepdim=True)
    return away / (away.pow(2).mean(dim=2, keepdim=True) + FEWEST).sqrt()


def _deviations(x: Tensor) -> Tensor:
    """B x 1 x H' x W': of every patch."""
    sums = torch.cat([x.mean(dim=1, keepdim=True), x.pow(2).mean(dim=1, keepdim=True)], dim=1)
    found = F.avg_pool2d(sums, SIDE, STRIDE, PADDING)
    mean, square = found[:, :1], found[:, 1:]
    deviations: Tensor = ((square - mean.pow(2)).clamp(min=0) + FEWEST).sqrt()
    return deviations


PATCHES = Backbone(PatchBackbone, suits_cpu=True)
