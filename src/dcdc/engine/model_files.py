"""The files that make a model, in a run folder or in a model folder of its own.

Every file has a format number that a later version may have to read or refuse. A file without
one is of format 1: run folders were written without.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dcdc.config.renamed import upgraded, upgraded_weights, without_gone
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import atomic_file, write_text
from dcdc.runtime.folder_contents import Contents
from dcdc.runtime.tensor_files import DamagedTensorFileError, load_tensors, save_tensors

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
NAMES = "names.json"
METRICS = "metrics.json"
CARD = "README.md"
REFERENCE = "reference.npz"
"""Features of some training images; a run folder has them in its sample."""
BACKBONE = "backbone"
"""A folder: what a backbone from a file, or of transformers, is built from."""
MODEL_FILES = (CONFIG, WEIGHTS, NAMES, METRICS, CARD, REFERENCE, f"{BACKBONE}/*")
"""As patterns."""
EXPORTS = ("model.onnx", "model.pt2")
MODEL_FOLDER = Contents((*MODEL_FILES, *EXPORTS))
_ALWAYS_THERE = ("data", "network", "augment", "train")
"""Sections of every config of ours."""

CONFIG_FORMAT = 2
"""1: of 0.1.0, whose names are read as today's (dcdc/config/renamed.py)."""


def write_config(path: Path, config: Mapping[str, Any]) -> None:
    _write_json(path, {"format": CONFIG_FORMAT, **config})


def read_config(path: Path) -> dict[str, Any]:
    config = read_json(path)
    found = config.pop("format", 1)
    if found == 1:
        # A comparison's run names its method, and has that method's settings: none were renamed.
        return config if "method" in config else upgraded(config)
    _check_format(path, found, CONFIG_FORMAT)
    return without_gone(config)


def is_own_config(path: Path) -> bool:
    """Whether a run of ours wrote it: many a project has a config.json."""
    if not path.is_file():
        return False
    try:
        config = read_json(path)
    except InputError:
        return False
    sections = [config.get(name) for name in _ALWAYS_THERE]
    return "n_clusters" in config and all(isinstance(section, dict) for section in sections)


def write_weights(path: Path, network: nn.Module, metadata: Mapping[str, Any]) -> None:
    with atomic_file(path) as temporary:
        save_tensors(temporary, network.state_dict(), {"dcdc": json.dumps(metadata)})


def read_weights(path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_tensors(path)
        weights = upgraded_weights(tensors)
        # In 0.1.0 a finished network had the projection of its features' training, too.
        return {name: found for name, found in weights.items() if not name.startswith("parts.")}
    except (OSError, DamagedTensorFileError) as error:
        raise InputError(f"model file {path} is damaged: {error}") from None


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    _write_json(path, metrics)


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"cannot read {path}: not a JSON object")
    return content


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def _check_format(path: Path, found: object, known: int) -> None:
    if found != known:
        raise InputError(
            f"{path} has format {json.dumps(found)}, this dcdc reads format {known}: "
            "update dcdc, or ask for a file of that format"
        )
