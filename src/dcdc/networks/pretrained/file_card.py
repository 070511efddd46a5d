"""What is known of a model file: a JSON file beside it, or what the model file holds of it.

    {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "size": 224,
     "licence": "Apache-2.0", "trained_on": "ImageNet-1k", "uses_labels": true}

`mean` and `std` must be known: of images that are normalised otherwise a model makes other
features.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcdc.errors import InputError
from dcdc.networks.backbones import Pretrained
from dcdc.networks.pretrained.training_data import UNKNOWN
from dcdc.stored.files import BACKBONE_SETTINGS


def read_card(path: Path, inside: Mapping[str, str], size: int | None, name: str) -> Pretrained:
    """Of the model file `path`; `inside` is what it holds of itself, `size` its input's side."""
    beside = card_path(path)
    card = {**_values(inside), **_read(beside)}
    mean, std = _three(card.get("mean")), _three(card.get("std"))
    if mean is None or std is None or min(std) <= 0:
        raise InputError(
            f"nothing says how images for {path} are normalised",
            remedy='write "mean" and "std" of pixels in [0, 1], three numbers each, to a JSON file'
            " beside it, with .json after its name",
        )
    side = card.get("size", size)
    if not isinstance(side, int) or side < 1:
        raise InputError(
            f"nothing says which size of images {path} takes",
            remedy='write "size", in pixels, to the JSON file beside it',
        )
    if size is not None and side != size:
        raise InputError(f"{beside} says {side} pixels, but {path} takes {size}")
    labels = card.get("uses_labels")
    return Pretrained(
        size=side,
        mean=mean,
        std=std,
        licence=str(card.get("licence") or card.get("license") or UNKNOWN),
        trained_on=str(card.get("trained_on") or UNKNOWN),
        uses_labels=labels if isinstance(labels, bool) else None,
        name=name,
    )


def card_path(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _values(inside: Mapping[str, str]) -> dict[str, Any]:
    """Of texts, as JSON where they are: a model file holds texts alone."""
    found: dict[str, Any] = {}
    for key, text in inside.items():
        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError):
            found[key] = text
    return found


def _read(path: Path) -> dict[str, Any]:
    return BACKBONE_SETTINGS.read(path) if path.exists() else {}


def _three(values: Any) -> tuple[float, ...] | None:
    if not isinstance(values, list) or len(values) != 3:
        return None
    return tuple(map(float, values)) if all(isinstance(x, int | float) for x in values) else None
