"""The files that make a model, in a run folder or in a model folder of its own.

Every file has a format number that a later version may have to read or refuse. A file without
one is of format 1: run folders were written without.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.config.keys import flatten
from dcdc.config.renamed import upgraded, upgraded_weights, without_gone
from dcdc.errors import InputError
from dcdc.runtime.atomic_files import atomic_file, write_text
from dcdc.runtime.folder_contents import Contents
from dcdc.runtime.tensor_files import DamagedTensorFileError, load_tensors, not_finite, save_tensors
from dcdc.stored import files
from dcdc.stored.reading import DamagedFileError, file_digest, sealed
from dcdc.stored.schema import Anything, MapOf, Record, Text, Unfit

if TYPE_CHECKING:
    from torch import Tensor, nn

CONFIG = files.CONFIG.name
WEIGHTS = "model.safetensors"
NAMES = files.NAMES.name
METRICS = files.METRICS.name
CARD = "README.md"
REFERENCE = files.REFERENCE.name
"""Features of some training images; a run folder has them in its sample."""
BACKBONE = "backbone"
"""A folder: what a backbone from a file, or of transformers, is built from."""
MODEL_FILES = (CONFIG, WEIGHTS, NAMES, METRICS, CARD, REFERENCE, f"{BACKBONE}/*")
"""As patterns."""
EXPORTS = ("model.onnx", "model.pt2")
MODEL_FOLDER = Contents((*MODEL_FILES, *EXPORTS))
_ALWAYS_THERE = ("data", "network", "augment", "train")
"""Sections of every config of ours."""

_WEIGHTS_NOTE = Record({}, {"settings": MapOf(Anything()), "backbone_files": MapOf(Text())})
_SETTINGS_OF_ANSWERS = (
    *("n_clusters", "data.size", "data.n_features", "augment.resize_to"),
    *(
        f"network.{name}"
        for name in ("frozen", "input_size", "sobel", "over_clusters", "sub_heads")
    ),
)

CONFIG_FORMAT = 2
"""1: of 0.1.0, whose names are read as today's (dcdc/config/renamed.py)."""


def write_config(path: Path, config: Mapping[str, Any]) -> None:
    _write_json(path, {"format": CONFIG_FORMAT, **config})


def read_config(path: Path) -> dict[str, Any]:
    config = files.CONFIG.read(path)
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
        config = files.CONFIG.read(path)
    except InputError:
        return False
    sections = [config.get(name) for name in _ALWAYS_THERE]
    return "n_clusters" in config and all(isinstance(section, dict) for section in sections)


def weights_note(
    dcdc: str, config: Mapping[str, Any], backbone_files: Iterable[Path] = ()
) -> dict[str, Any]:
    """What weights say of themselves: settings that answers depend on, and check sums of the files
    that the backbone is built from."""
    settings = {key: value for key, value in flatten(config).items() if key in _SETTINGS_OF_ANSWERS}
    files = {path.name: file_digest(path) for path in backbone_files}
    return {
        **{"dcdc": dcdc, "n_clusters": config["n_clusters"]},
        **{"settings": settings, "backbone_files": files},
    }


def write_weights(path: Path, network: "nn.Module", note: Mapping[str, Any]) -> None:
    with atomic_file(path) as temporary:
        save_tensors(temporary, network.state_dict(), note)


def read_weights(path: Path, config: Mapping[str, Any]) -> "dict[str, Tensor]":
    """Those of a network with `config`: of one with other settings they are refused."""
    try:
        tensors, note = load_tensors(path)
        if name := not_finite(tensors):
            raise DamagedTensorFileError(f"{name} has values that are not finite")
        _WEIGHTS_NOTE.check(note, "")
    except (DamagedTensorFileError, Unfit) as error:
        raise DamagedFileError(
            f"model file {path} is damaged ({error})",
            remedy="restore it from a copy, or train again",
        ) from None
    now = flatten(config)
    for key, value in note.get("settings", {}).items():
        if now.get(key) != value:
            raise InputError(
                f"{path.with_name(CONFIG)} has {key} = {now.get(key)!r}, its model was trained "
                f"with {value!r}",
                remedy="set it back",
            )
    for name, digest in note.get("backbone_files", {}).items():
        kept = path.with_name(BACKBONE) / name
        if kept.is_file() and file_digest(kept) != digest:
            raise DamagedFileError(
                f"{kept} was altered: it is not what the model was trained with",
                remedy="restore it from a copy, or train again",
            )
    weights = upgraded_weights(tensors)
    # In 0.1.0 a finished network had the projection of its features' training, too.
    return {name: found for name, found in weights.items() if not name.startswith("parts.")}


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    _write_json(path, sealed(metrics))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def _check_format(path: Path, found: object, known: int) -> None:
    if found != known:
        raise InputError(
            f"{path} has format {json.dumps(found)}, this dcdc reads format {known}: "
            "update dcdc, or ask for a file of that format"
        )
