"""Any `nn.Module` as a backbone: `module:NAME`, a name that this process alone knows.

    spec = register_module(net)  # "module:ResNet-1a2b3c4d", as a config has it

The module takes normalised images, B x C x H x W, and returns features, B x D; a map or tokens are
averaged. Its side in pixels and the normalisation are those that it tells of itself, or ImageNet's.
"""

import copy
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.fitting import pooled
from dcdc.networks.pretrained.module_card import card_of

SCHEME = "module"
_KNOWN: dict[str, Backbone] = {}


def register_module(
    module: nn.Module | Backbone, name: str | None = None, pretrained: Pretrained | None = None
) -> str:
    """The spec by which `find_backbone` finds it from now on. Without a `name`, equal weights have
    equal names; one that is registered again stands for the newer module."""
    if isinstance(module, Backbone):
        backbone, own_name = module, _name_of(module)
    else:
        prototype, told = _settled(module, pretrained)
        backbone = Backbone(partial(GivenModule, prototype), pretrained=told)
        own_name = f"{type(module).__name__}-{prototype.digest}"
    name = name or own_name
    _KNOWN[name] = backbone
    return f"{SCHEME}:{name}"


def registered_module(rest: str) -> Backbone:
    """Of what stands after the colon."""
    if rest not in _KNOWN:
        raise InputError(
            f"the backbone {SCHEME}:{rest} is a module that was given from Python: call "
            f"dcdc.networks.register_module(module, name={rest!r}) with it first"
        )
    return _KNOWN[rest]


class Prototype(nn.Module):
    """A copy of what was given, looked at once; networks are built from copies of it."""

    def __init__(self, module: nn.Module, told: Pretrained) -> None:
        super().__init__()
        self.trunk = copy.deepcopy(module).cpu().float().eval()
        self.name = type(module).__name__
        self.channels = len(told.mean)
        features = self._tried(told.size)
        self.n_features = int(features.shape[1])
        self.trunk.requires_grad_(True)  # whoever fine-tunes it asks for that elsewhere
        self.digest = _digest(self.trunk, told)
        self.fingerprint = _fingerprint(features)

    def _tried(self, size: int) -> Tensor:
        """Features of two images of noise: their number is known by trying alone."""
        noise = torch.randn(
            (2, self.channels, size, size), generator=torch.Generator().manual_seed(0)
        )
        where = f"the backbone {self.name}"
        try:
            with torch.no_grad():
                features = pooled(self.trunk(noise), where)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{where} fails on images of {size} pixels: {first_line(error)}"
            ) from error
        if len(features) != 2:
            raise InputError(
                f"{where} makes {tuple(features.shape)} of two images: it must return B x D"
            )
        return features


class GivenModule(nn.Module):
    """What a module makes of images, B x D."""

    def __init__(self, prototype: Prototype, in_channels: int) -> None:
        super().__init__()
        channels = prototype.channels
        if in_channels not in (1, channels):
            raise InputError(
                f"the backbone {prototype.name} reads images of {channels} channel(s), not of "
                f"{in_channels}"
            )
        self.channels, self.n_features = channels, prototype.n_features
        self.name = prototype.name
        self.fingerprint = prototype.fingerprint
        """Of what it makes of noise: weights alone do not tell how a module uses them."""
        self.trunk = copy.deepcopy(prototype.trunk)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] != self.channels:  # grey
            x = x.expand(-1, self.channels, -1, -1)
        return pooled(self.trunk(x), self.name)


def _settled(module: nn.Module, pretrained: Pretrained | None) -> tuple[Prototype, Pretrained]:
    told = pretrained or card_of(module)
    return Prototype(module, told), told


def _name_of(backbone: Backbone) -> str:
    build = backbone.build
    called = getattr(build, "__name__", type(build).__name__)
    told = hashlib.sha256(repr(backbone.pretrained).encode())
    return f"{called.strip('<>')}-{told.hexdigest()[:8]}"


def _digest(module: nn.Module, told: Pretrained) -> str:
    found = hashlib.sha256(repr((module, told)).encode())
    state: Mapping[str, Any] = module.state_dict()
    for name, tensor in state.items():
        found.update(name.encode())
        if isinstance(tensor, Tensor):
            found.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()[:8]


def _fingerprint(features: Tensor) -> str:
    """Coarse, so that rounding errors seldom change it."""
    shares = features / features.std().clamp(min=1e-8)
    return hashlib.sha256((10 * shares).round().numpy().tobytes()).hexdigest()[:16]
