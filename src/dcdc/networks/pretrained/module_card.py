"""What a module tells of itself: the images that it takes, and where its weights come from.

Attributes that are looked for: `pretrained` (a `Pretrained`), or `input_size`, `mean`, `std`,
`licence`, `trained_on` and `uses_labels`; timm's `pretrained_cfg`, transformers' `config`. Where
nothing is told, images have ImageNet's usual side and normalisation.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError
from dcdc.networks.backbones import Pretrained
from dcdc.networks.pretrained.training_data import UNKNOWN, licence_named, of_tag

SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def card_of(module: nn.Module) -> Pretrained:
    own = getattr(module, "pretrained", None)
    if isinstance(own, Pretrained):
        return own
    told = {**_by_transformers(module), **_by_timm(module), **_by_attributes(module)}
    name = type(module).__name__
    channels = _channels(module)
    mean = told.get("mean") or _fitting(MEAN, channels)
    std = told.get("std") or _fitting(STD, channels)
    if len(mean) != len(std) or min(std) <= 0:
        raise InputError(
            f"the backbone {name} has mean {mean} and std {std}: give a mean and a std above 0 for "
            "each channel"
        )
    return Pretrained(
        size=told.get("size") or SIZE,
        mean=mean,
        std=std,
        licence=str(told.get("licence") or UNKNOWN),
        trained_on=str(told.get("trained_on") or UNKNOWN),
        uses_labels=told.get("uses_labels"),
        name=name,
    )


def _by_attributes(module: nn.Module) -> dict[str, Any]:
    labels = getattr(module, "uses_labels", None)
    found = {
        "size": _side(getattr(module, "input_size", None)),
        "mean": _numbers(getattr(module, "mean", None)),
        "std": _numbers(getattr(module, "std", None)),
        "licence": _text(getattr(module, "licence", None)),
        "trained_on": _text(getattr(module, "trained_on", None)),
        "uses_labels": labels if isinstance(labels, bool) else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _by_timm(module: nn.Module) -> dict[str, Any]:
    told = getattr(module, "pretrained_cfg", None)
    if not isinstance(told, Mapping):
        return {}
    found: dict[str, Any] = {
        "size": _side(told.get("input_size")),
        "mean": _numbers(told.get("mean")),
        "std": _numbers(told.get("std")),
    }
    # Named whether they were loaded or not: rather marked in vain than not marked.
    if told.get("tag"):
        found["licence"] = licence_named(told.get("license"))
        found["trained_on"], found["uses_labels"] = of_tag(str(told["tag"]))
    return {key: value for key, value in found.items() if value is not None}


def _by_transformers(module: nn.Module) -> dict[str, Any]:
    side = _side(getattr(getattr(module, "config", None), "image_size", None))
    return {} if side is None else {"size": side}


def _channels(module: nn.Module) -> int:
    """That its first convolution reads; three where there is none."""
    layers = (layer for layer in module.modules() if isinstance(layer, nn.Conv2d))
    first = next(layers, None)
    return 3 if first is None or isinstance(first, nn.LazyConv2d) else first.in_channels


def _fitting(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    mean = sum(values) / len(values)
    return values if channels == len(values) else (mean,) * channels


def _side(value: Any) -> int | None:
    """Of a number, of H x W or of C x H x W."""
    last = value[-1] if isinstance(value, tuple | list | torch.Size) and value else value
    return last if isinstance(last, int) and last > 0 else None


def _numbers(value: Any) -> tuple[float, ...] | None:
    if isinstance(value, Tensor):
        value = value.flatten().tolist()
    if not isinstance(value, tuple | list) or not value:
        return None
    return tuple(map(float, value)) if all(isinstance(x, int | float) for x in value) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
