"""Backbones of timm: `timm:NAME`, or `timm:NAME@PATH` with weights from a safetensors file.

Input size, normalisation, pooling, licence and origin are those of timm's own configuration.
"""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dcdc.errors import InputError
from dcdc.nearest_name import nearest
from dcdc.networks.backbones import Backbone, Pretrained
from dcdc.networks.pretrained.channels import AsRGB, require_grey_or_rgb
from dcdc.networks.pretrained.fitting import load_fitting
from dcdc.networks.pretrained.requirements import required
from dcdc.networks.pretrained.training_data import UNKNOWN, licence_named, of_tag
from dcdc.networks.pretrained.weight_files import (
    WEIGHT_FILE,
    hub_file,
    read_safetensors,
    require_file,
)

_HEADS = ("head.", "fc.", "classifier.", "head_dist.", "last_linear.")
"""Classifiers, which features do without."""


def timm_backbone(rest: str) -> Backbone:
    name, at, path = rest.partition("@")
    timm = _timm(rest)
    settings = _settings(timm, name)
    if at:
        require_file(Path(path).expanduser())
    told = _told(settings, f"timm:{rest}", own_weights=bool(at) and "." not in name)
    load = (
        partial(_load_file, Path(path).expanduser())
        if at
        else partial(_load_from_hub, name, settings)
    )
    return Backbone(partial(TimmBackbone, name), load_weights=load, pretrained=told)


class TimmBackbone(nn.Module):
    """timm's pooled output before its classifier, B x D."""

    def __init__(self, name: str, in_channels: int) -> None:
        super().__init__()
        require_grey_or_rgb(in_channels, f"timm:{name}")
        self.as_rgb = AsRGB()
        self.trunk: nn.Module = _timm(name).create_model(name, pretrained=False, num_classes=0)
        width: Any = getattr(self.trunk, "head_hidden_size", None) or self.trunk.num_features
        self.n_features = int(width)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.as_rgb(x))
        return features


def _timm(rest: str) -> Any:
    return required("timm", of=f"the backbone timm:{rest}", extra="timm")


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


def _load_from_hub(name: str, settings: Any, module: nn.Module) -> None:
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
        whole = _timm(name).create_model(
            name, pretrained=True, num_classes=0, pretrained_cfg_overlay={"file": str(path)}
        )
        load_fitting(_trunk(module), whole.state_dict(), origin=str(path))


def _load_file(path: Path, module: nn.Module) -> None:
    trunk = _trunk(module)
    state = read_safetensors(path)
    adapt = getattr(sys.modules.get(type(trunk).__module__), "checkpoint_filter_fn", None)
    if adapt is not None:
        state = adapt(state, trunk)
    left = [name for name in state if re.search(r"attn_mask|relative_position_index", name)]
    load_fitting(trunk, state, origin=str(path), optional=(*_HEADS, *left))


def _trunk(module: nn.Module) -> nn.Module:
    trunk = module.trunk
    assert isinstance(trunk, nn.Module)
    return trunk
