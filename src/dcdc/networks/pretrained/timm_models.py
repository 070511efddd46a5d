"""Backbones of timm: `timm:NAME`, or `timm:NAME@PATH` with weights from a safetensors file.

Input size, normalisation, pooling, licence and origin are those of timm's own configuration.
`timm:NAME:SIDE` takes images of another size: DINOv2's own is 518 pixels, and 224 is far cheaper.
"""

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dcdc.errors import InputError, first_line
from dcdc.nearest_name import nearest
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.fitting import AsRGB, load_fitting, require_grey_or_rgb, trunk_of
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.training_data import UNKNOWN, licence_named, of_tag
from dcdc.networks.pretrained.weight_files import (
    WEIGHT_FILE,
    hub_file,
    read_safetensors,
    require_file,
)
from dcdc.runtime.environment import expanded

_HEADS = ("head.", "fc.", "classifier.", "head_dist.", "last_linear.")
"""Classifiers, which features do without."""


def timm_backbone(rest: str) -> Backbone:
    sized, at, path = rest.partition("@")
    name, _, size = sized.partition(":")
    timm = _timm(rest)
    settings = _settings(timm, name)
    side = _side(size, rest)
    if at:
        require_file(expanded(path))
    told = _told(settings, f"timm:{rest}", own_weights=bool(at) and "." not in name)
    if side is not None:
        told = replace(told, size=side)
    img_size = side if settings.fixed_input_size else None  # others take any size as they are
    load = (
        partial(_load_file, expanded(path))
        if at
        else partial(_load_from_hub, name, settings, img_size)
    )
    return Backbone(partial(TimmBackbone, name, img_size), load_weights=load, pretrained=told)


class TimmBackbone(nn.Module):
    """timm's pooled output before its classifier, B x D."""

    def __init__(self, name: str, img_size: int | None, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, f"timm:{name}")
        self.as_rgb = AsRGB()
        self.trunk: nn.Module = _created(name, img_size, pretrained=False)
        width: Any = getattr(self.trunk, "head_hidden_size", None) or self.trunk.num_features
        self.n_features = int(width)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.as_rgb(x))
        return features


def _timm(rest: str) -> Any:
    return required("timm", of=f"the backbone timm:{rest}", extra="timm")


def _created(name: str, img_size: int | None, **how: Any) -> Any:
    """`img_size` is that of models whose size is fixed when they are built."""
    sized = {} if img_size is None else {"img_size": img_size}
    try:
        return _timm(name).create_model(name, num_classes=0, **sized, **how)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"timm cannot build {name}: {first_line(error)}") from error


def _side(size: str, rest: str) -> int | None:
    if not size:
        return None
    if not size.isdecimal() or not int(size):
        raise InputError(
            f"the backbone timm:{rest}: a side in pixels stands after the name's colon"
        )
    return int(size)


def _settings(timm: Any, name: str) -> Any:
    """timm's configuration of these weights."""
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        hint = nearest(name, timm.list_pretrained()) or nearest(name, timm.list_models())
        raise InputError(f"timm has no model {architecture!r}{hint}")
    tags = [each.partition(".")[2] for each in timm.list_pretrained(f"{architecture}.*")]
    if tag and tag not in tags:
        others = nearest(tag, tags) or f"; there are: {', '.join(tags) or 'none'}"
        raise InputError(f"timm has no weights {tag!r} of {architecture}{others}")
    settings = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if settings is None:
        raise InputError(f"timm says nothing of the images that {name} takes")
    return settings


def _told(settings: Any, name: str, own_weights: bool) -> Pretrained:
    """`own_weights`: those of somebody's file, of which timm knows nothing."""
    _, height, width = settings.input_size
    trained_on, uses_labels = of_tag(settings.tag or "")
    if own_weights:
        trained_on, uses_labels = UNKNOWN, None
    return Pretrained(
        size=max(height, width),
        mean=tuple(settings.mean),
        std=tuple(settings.std),
        licence=UNKNOWN if own_weights else licence_named(settings.license),
        trained_on=trained_on,
        uses_labels=uses_labels,
        name=name,
    )


def _load_from_hub(name: str, settings: Any, img_size: int | None, module: nn.Module) -> None:
    repo = settings.hf_hub_id
    if not repo:
        raise InputError(
            f"the weights of timm:{name} exist as a pickle alone, which can run code",
            remedy="take another model, or weights of your own as timm:NAME@PATH.safetensors",
        )
    otherwise = f"give the file's place as timm:{name}@PATH/{WEIGHT_FILE}"
    path = hub_file(repo, WEIGHT_FILE, of=f"timm:{name}", otherwise=otherwise)
    try:
        _load_file(path, module)
    except InputError:  # an older layout, which timm itself can read
        overlay = {"file": str(path)}
        whole = _created(name, img_size, pretrained=True, pretrained_cfg_overlay=overlay)
        load_fitting(trunk_of(module), whole.state_dict(), origin=str(path))


def _load_file(path: Path, module: nn.Module) -> None:
    trunk = trunk_of(module)
    state = read_safetensors(path)
    adapt = getattr(sys.modules.get(type(trunk).__module__), "checkpoint_filter_fn", None)
    if adapt is not None:
        state = adapt(state, trunk)
    left = [name for name in state if re.search(r"attn_mask|relative_position_index", name)]
    load_fitting(trunk, state, origin=str(path), optional=(*_HEADS, *left))
