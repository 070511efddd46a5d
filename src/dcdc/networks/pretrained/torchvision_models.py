"""Backbones of torchvision: `torchvision:NAME`, `torchvision:NAME.WEIGHTS`, or `...@PATH`.

Its files are pickles by name; their checksums are known, and only tensors are read from them. With
`@PATH` the weights come from a safetensors file instead.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError
from dcdc.nearest_name import nearest
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.fitting import AsRGB, load_fitting, require_grey_or_rgb, trunk_of
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.training_data import UNKNOWN, licence_named
from dcdc.networks.pretrained.weight_files import read_safetensors, require_file
from dcdc.runtime.environment import expanded
from dcdc.stored.reading import file_digest

SECONDS = 30.0
"""Without a byte from torchvision's server, until it counts as out of reach."""
_HEADS = ("fc", "classifier", "heads", "head")


def torchvision_backbone(rest: str) -> Backbone:
    name, at, path = rest.partition("@")
    models = _models(rest)
    architecture, _, tag = name.partition(".")
    known = models.list_models(module=models)
    if architecture not in known:
        raise InputError(f"torchvision has no model {architecture!r}{nearest(architecture, known)}")
    weights = _weights(models, architecture, tag)
    own = expanded(path) if at else None
    if own is not None:
        require_file(own)
    told = _told(weights, f"torchvision:{rest}", unnamed=own is not None and not tag)
    load = partial(_load, f"torchvision:{rest}", weights, own)
    return Backbone(partial(TorchvisionBackbone, architecture), load_weights=load, pretrained=told)


class TorchvisionBackbone(nn.Module):
    """What the last layer of the classifier would read, B x D."""

    def __init__(self, architecture: str, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, f"torchvision:{architecture}")
        self.as_rgb = AsRGB()
        self.trunk: nn.Module = _models(architecture).get_model(architecture, weights=None)
        self.n_features = _without_classifier(self.trunk, architecture)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.as_rgb(x))
        return features


def _models(rest: str) -> Any:
    return required(
        "torchvision", of=f"the backbone torchvision:{rest}", extra="torchvision"
    ).models


def _weights(models: Any, architecture: str, tag: str) -> Any:
    all_weights = models.get_model_weights(architecture)
    if not tag:
        return all_weights.DEFAULT
    names = [each.name for each in all_weights]
    if tag not in names:
        hint = nearest(tag, names) or f"; there are: {', '.join(names)}"
        raise InputError(f"torchvision has no weights {tag!r} of {architecture}{hint}")
    return all_weights[tag]


def _without_classifier(trunk: nn.Module, architecture: str) -> int:
    """Takes the last linear layer off, and the noise before it; its width is what is left."""
    for head in _HEADS:
        last = getattr(trunk, head, None)
        layers = (
            []
            if last is None
            else [(f"{head}.{name}".rstrip("."), layer) for name, layer in last.named_modules()]
        )
        linear = [(name, layer) for name, layer in layers if isinstance(layer, nn.Linear)]
        if not linear:
            continue
        for name, layer in layers:
            if isinstance(layer, nn.Dropout):
                trunk.set_submodule(name, nn.Identity())
        name, final = linear[-1]
        trunk.set_submodule(name, nn.Identity())
        return final.in_features
    raise InputError(f"torchvision:{architecture} has no linear classifier to take off")


def _told(weights: Any, name: str, unnamed: bool) -> Pretrained:
    """`unnamed`: somebody's own weights, of which torchvision knows nothing."""
    preset = weights.transforms()
    trained_on, uses_labels = _origin(weights.name)
    licence = licence_named(weights.meta.get("license", "bsd-3-clause"))
    return Pretrained(
        size=int(preset.crop_size[0]),
        mean=tuple(preset.mean),
        std=tuple(preset.std),
        licence=UNKNOWN if unnamed else licence,
        trained_on=UNKNOWN if unnamed else trained_on,
        uses_labels=None if unnamed else uses_labels,
        name=name,
    )


def _origin(name: str) -> tuple[str, bool | None]:
    if "IMAGENET1K" not in name:
        return UNKNOWN, None
    return ("Instagram hashtags, then ImageNet-1k" if "SWAG" in name else "ImageNet-1k"), True


def _load(spec: str, weights: Any, path: Path | None, module: nn.Module) -> None:
    trunk = trunk_of(module)
    state = _fetched(spec, weights.url) if path is None else read_safetensors(path)
    own = trunk.state_dict()
    heads = tuple(name for name in state if name.partition(".")[0] in _HEADS and name not in own)
    load_fitting(trunk, state, origin=str(path or weights.url.rpartition("/")[2]), optional=heads)


def _fetched(spec: str, url: str) -> dict[str, Tensor]:
    """From torch's cache or the net, by its checksum, and tensors alone."""
    name = url.rpartition("/")[2]
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / name
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _waiting_at_most(SECONDS):
                torch.hub.download_url_to_file(url, str(path), _prefix(name) or None, False)
        except Exception as error:
            raise InputError(
                f"the backbone {spec} needs {name}, which is not in {folder} and cannot be fetched",
                remedy="place the file there",
            ) from error
    if not _prefix(name) or not file_digest(path).startswith(_prefix(name)):
        raise InputError(
            f"the backbone {spec}: {path} has not the checksum that its name says",
            remedy="delete it and fetch it again",
        )
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


@contextmanager
def _waiting_at_most(seconds: float) -> Iterator[None]:
    """For a server that takes the call and says nothing: torch.hub itself would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _prefix(name: str) -> str:
    found = re.search(r"-([0-9a-f]{8,})\.", name)
    return found[1] if found else ""
