"""Backbones by name: images, B x C x H x W, to features, B x D.

    BACKBONES.register("my-net", Backbone(lambda in_channels: MyNet(in_channels)))

A backbone is any `nn.Module` with an attribute `n_features`. Batch norms are converted to
statistics per copy group, so that original and perturbed copies do not mix. Pretrained ones have
names too (`efficientnet-lite0`), or are in a library or a file, `scheme:rest`:
`timm:vit_small_patch14_dinov2.lvd142m`, `hf:facebook/dinov2-small`, `file:backbone.onnx`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from dcdc.errors import InputError
from dcdc.networks.copy_group_norm import CopyGroupNorm, CopyGroupNorm1d, convert_copy_group_norm
from dcdc.networks.layers import Dense, Grid
from dcdc.networks.local_maps import ShowsMaps
from dcdc.registry import Registry


@dataclass(frozen=True)
class Pretrained:
    """What a pretrained backbone's own metadata says of it."""

    size: int
    """Side in pixels of the images that it is given."""
    mean: tuple[float, ...]
    std: tuple[float, ...]
    """Channel normalisation of pixels in [0, 1]."""
    licence: str
    """Of the weights; "unknown" where nothing says."""
    trained_on: str
    """Which data trained the weights: "ImageNet-1k", "LVD-142M"; "unknown" where nothing says."""
    uses_labels: bool | None
    """Whether labels of that data did; None: unknown."""
    name: str
    """For people: "EfficientNet-Lite0"."""


@dataclass(frozen=True)
class Backbone:
    build: Callable[[int], nn.Module]
    """Of the number of channels it is given; the architecture, never with pretrained weights."""
    suits_cpu: bool = False
    """Whether a CPU trains it in minutes."""
    load_weights: Callable[[nn.Module], None] | None = None
    """Puts the pretrained weights into what `build` made. It may fetch them: only a training that
    begins calls it."""
    pretrained: Pretrained | None = None
    """None: it is trained from scratch."""
    trainable: bool = True
    """False: it has no gradient, so that it can only be frozen."""
    files: tuple[Path, ...] = ()
    """What `build` reads. A run folder that keeps copies can be opened where these are not; see
    `dcdc.networks.pretrained.keep_files`."""


Scheme = Callable[[str], Backbone]
"""Of what follows the colon."""

BACKBONES: Registry[Backbone] = Registry(
    "backbone",
    "dcdc.backbones",
    {
        "resnet34": "dcdc.networks.resnet:RESNET34",
        "resnet18": "dcdc.networks.resnet:RESNET18",
        "resnet34-unpooled": "dcdc.networks.resnet:RESNET34_UNPOOLED",
        "resnet18-unpooled": "dcdc.networks.resnet:RESNET18_UNPOOLED",
        "small": "dcdc.networks.backbones:SMALL",
        "convnet": "dcdc.networks.convnet:CONVNET",
        "patches": "dcdc.networks.patches:PATCHES",
        "vectors": "dcdc.networks.feature_vectors:GIVEN",
        "efficientnet-lite0": "dcdc.networks.pretrained.efficientnet_lite0:EFFICIENTNET_LITE0",
    },
)

BACKBONE_SCHEMES: Registry[Scheme] = Registry(
    "scheme of backbones",
    "dcdc.backbone_schemes",
    {
        "timm": "dcdc.networks.pretrained.timm_models:timm_backbone",
        "hf": "dcdc.networks.pretrained.huggingface:hugging_face_backbone",
        "torchvision": "dcdc.networks.pretrained.torchvision_models:torchvision_backbone",
        "file": "dcdc.networks.pretrained.model_files:file_backbone",
        "module": "dcdc.networks.pretrained.python_modules:registered_module",
    },
)


def find_backbone(spec: str) -> Backbone:
    """Of a registered name, or of `scheme:rest`. No weight is read or fetched."""
    scheme, colon, rest = spec.partition(":")
    if not colon or spec in BACKBONES.names():
        return _named(spec)
    if not rest:
        raise InputError(f"the backbone {spec!r} names nothing after {scheme}:")
    return BACKBONE_SCHEMES.get(scheme)(rest)


def build_backbone(spec: str, in_channels: int) -> nn.Module:
    """Without pretrained weights, its batch norms converted."""
    return convert_copy_group_norm(find_backbone(spec).build(in_channels))


def _named(name: str) -> Backbone:
    try:
        return BACKBONES.get(name)
    except InputError as error:
        if name in BACKBONES.names():  # it is there, but something that it needs is not
            raise
        if "/" in name or Path(name).suffix:
            raise InputError(
                f"unknown backbone {name!r}",
                remedy=f"of a model's file write file:{name}, of weights alone timm:NAME@{name}",
            ) from None
        others = ", ".join(f"{scheme}:..." for scheme in BACKBONE_SCHEMES.names())
        raise InputError(f"{error.problem}, {others}") from None


class SmallBackbone(ShowsMaps):
    """For digits and the like: three 3x3 layers, a 4x4 grid, and a dense layer of 256 features.

    The dense layer over the grid, unlike an average, knows where a stroke is: a 6 is not a 9.
    """

    n_maps, n_features = 64, 256
    up_to_maps = 7

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, 32, 3, padding=1, bias=False),
            CopyGroupNorm(32),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            CopyGroupNorm(64),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1, bias=False),
            CopyGroupNorm(64),
            Grid(4),
            nn.Flatten(),
            Dense(64 * 4 * 4, self.n_features, bias=False),
            CopyGroupNorm1d(self.n_features),
        )


SMALL = Backbone(SmallBackbone, suits_cpu=True)
