"""Backbones that show their maps, and what scores how well maps and features belong to one image.

Shapes: B images, C maps of H x W places, L = HW, D features.
"""

from torch import Tensor, nn


class ShowsMaps(nn.Module):
    """A backbone whose features are made of maps that can be seen on the way."""

    layers: nn.Sequential
    n_maps: int
    """C"""
    n_features: int
    """D"""
    up_to_maps: int
    """Layers."""

    def maps(self, x: Tensor) -> Tensor:
        """B x C x H x W"""
        maps: Tensor = self.layers[: self.up_to_maps](x)
        return maps

    def features_of(self, maps: Tensor) -> Tensor:
        """B x D"""
        features: Tensor = self.layers[self.up_to_maps :](maps)
        return features

    def forward(self, x: Tensor) -> Tensor:
        return self.features_of(self.maps(x))


class LocalDiscriminator(nn.Module):
    """Scores an image's features with each place of another's maps, by a product of both."""

    def __init__(self, n_maps: int, n_features: int, n_compared: int = 128) -> None:
        super().__init__()
        self.of_maps = nn.Linear(n_maps, n_compared)
        self.of_features = nn.Linear(n_features, n_compared)

    def places(self, maps: Tensor) -> Tensor:
        """B x L x `n_compared`"""
        places: Tensor = self.of_maps(maps.flatten(2).transpose(1, 2))
        return places

    def whole(self, features: Tensor) -> Tensor:
        """B x `n_compared`"""
        whole: Tensor = self.of_features(features) / self.of_features.out_features**0.5
        return whole
