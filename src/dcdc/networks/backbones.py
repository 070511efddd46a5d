"""Backbones by name: images, B x C x H x W, to features, B x D.

    BACKBONES.register("my-net", Backbone(lambda in_channels: MyNet(in_channels)))

A backbone is any `nn.Module` with an attribute `n_features`. Batch norms are converted to
statistics per copy group, so that original and perturbed copies do not mix.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from dcdc.networks.convert_norms import convert_copy_group_norm
from dcdc.registry import Registry


@dataclass(frozen=True)
class Backbone:
    build: Callable[[int], nn.Module]
    """Of the number of channels it is given."""
    suits_cpu: bool = False
    """Whether a CPU trains it in minutes."""


BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    "dcdc.backbones",
    {
        "resnet34": "dcdc.networks.resnet:RESNET34",
        "resnet18": "dcdc.networks.resnet:RESNET18",
        "resnet34-unpooled": "dcdc.networks.resnet:RESNET34_UNPOOLED",
        "resnet18-unpooled": "dcdc.networks.resnet:RESNET18_UNPOOLED",
        "small": "dcdc.networks.small:SMALL",
        "patches": "dcdc.networks.patches:PATCHES",
    },
)


def build_backbone(name: str, in_channels: int) -> nn.Module:
    return convert_copy_group_norm(BACKBONES.get(name).build(in_channels))
