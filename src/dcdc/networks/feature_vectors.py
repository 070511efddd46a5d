"""Feature vectors that a network is given, or that its frozen backbone made, before the heads.

Shapes: B images, D features.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.backbones import Backbone

VECTORS = "vectors"
"""The backbone of a network that is given feature vectors: there is none."""


class GivenFeatures(nn.Module):
    """In a backbone's place, where features come from elsewhere."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def forward(self, features: Tensor) -> Tensor:
        return features


class Directions(nn.Module):
    """The direction of each vector from the middle of the training set, of length sqrt(D): numbers
    of about 1, whatever scale the features have."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.middle: Tensor
        self.register_buffer("middle", torch.zeros(n_features))

    def forward(self, features: Tensor) -> Tensor:
        away = features.float() - self.middle
        unit: Tensor = F.normalize(away, dim=1, eps=1e-8)
        scaled: Tensor = unit * len(self.middle) ** 0.5
        return scaled


GIVEN = Backbone(GivenFeatures, suits_cpu=True)
