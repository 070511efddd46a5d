"""Checkpoints: whole or absent, the last good ones kept, no pickle.

A checkpoint is a folder of two files: `tensors.safetensors` (weights, optimiser moments, random
state) and `state.json` (where training stands, and a digest of the tensors).
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.config.renamed import has_predictor, upgraded_weights
from dcdc.runtime.atomic_files import atomic_folder, remove_leftovers, write_text
from dcdc.runtime.tensor_files import (
    DamagedTensorFileError,
    load_tensors,
    not_finite,
    save_tensors,
    tensors_from_bytes,
    tensors_to_bytes,
)
from dcdc.stored import files
from dcdc.stored.reading import DamagedFileError, file_digest, opened_regular, sealed
from dcdc.stored.schema import Unfit

if TYPE_CHECKING:
    from torch import Tensor

CHECKPOINTS = "checkpoint"
"""The folder of a run's checkpoints."""
FORMAT = 2
"""1: of 0.1.0, whose names are read as today's."""
TENSORS, STATE = "tensors.safetensors", files.CHECKPOINT_STATE.name
_NAME = re.compile(r"epoch-(\d+)-step-(\d+)", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    epoch: int
    """Finished epochs."""
    step: int
    """Finished steps of the next epoch."""
    tensors: "dict[str, Tensor]"
    extra: dict[str, Any]


class DamagedCheckpointError(Exception):
    """Truncated, altered or incomplete files."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Writes the checkpoint, then removes all but the last `keep`; the caller alone writes here."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    path = folder / f"epoch-{checkpoint.epoch:05d}-step-{checkpoint.step:06d}"
    with atomic_folder(path) as temporary:
        save_tensors(temporary / TENSORS, checkpoint.tensors)
        state = {
            "format": FORMAT,
            "epoch": checkpoint.epoch,
            "step": checkpoint.step,
            "extra": checkpoint.extra,
            "sha256": file_digest(temporary / TENSORS),
        }
        write_text(temporary / STATE, json.dumps(sealed(state), indent=1))
    remove_older(folder, keep)
    return path


def remove_older(folder: Path, keep: int) -> None:
    """All but the last `keep`."""
    for old in list_checkpoints(folder)[:-keep]:
        shutil.rmtree(old)


def list_checkpoints(folder: Path) -> list[Path]:
    """Oldest first."""
    found = folder.glob("epoch-*") if folder.is_dir() else ()
    return sorted((path for path in found if _NAME.fullmatch(path.name)), key=place_of)


def place_of(checkpoint: Path) -> tuple[int, int]:
    """Finished epochs, and steps of the next, as its name says."""
    name = _NAME.fullmatch(checkpoint.name)
    assert name, checkpoint
    return int(name[1]), int(name[2])


def load_latest(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; each damaged one passed over is named to `warn`."""
    for path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path)
        except DamagedCheckpointError as error:
            warn(f"checkpoint {path} is damaged ({error}): falling back to the one before it")
    return None


def load_checkpoint(path: Path) -> Checkpoint:
    try:
        state = files.CHECKPOINT_STATE.read(path / STATE)
        opened_regular(path / TENSORS).close()
        if file_digest(path / TENSORS) != state["sha256"]:
            raise DamagedCheckpointError(f"{TENSORS} is truncated or altered")
        tensors, _ = load_tensors(path / TENSORS)
    except DamagedFileError as error:
        raise DamagedCheckpointError(error.problem) from None
    except (OSError, Unfit, DamagedTensorFileError) as error:
        raise DamagedCheckpointError(f"{TENSORS}: {error}") from error
    weights = {name: each for name, each in tensors.items() if name.startswith("network/")}
    if name := not_finite(weights):
        raise DamagedCheckpointError(f"{name} has values that are not finite")
    checkpoint = Checkpoint(state["epoch"], state["step"], tensors, state["extra"])
    return _upgraded(checkpoint) if state["format"] == 1 else checkpoint


def _upgraded(old: Checkpoint) -> Checkpoint:
    """Of 0.1.0, with today's names."""
    of_network = {name for name in old.tensors if name.startswith("network/")}
    weights = {name.removeprefix("network/"): old.tensors[name] for name in of_network}
    features = "byol" if has_predictor(weights) else "contrast"
    renamed = {"neighbours": "phase/neighbours", "terms/instance": f"terms/{features}"}
    tensors = {f"network/{name}": tensor for name, tensor in upgraded_weights(weights).items()}
    for name in old.tensors.keys() - of_network:
        tensors[renamed.get(name, name)] = old.tensors[name]
    counts = {
        features if term == "instance" else term: count
        for term, count in old.extra["term_counts"].items()
    }
    return replace(old, tensors=tensors, extra={**old.extra, "term_counts": counts})


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """One line of JSON, then the tensors: for a process that does not see the files."""
    state = {"epoch": checkpoint.epoch, "step": checkpoint.step, "extra": checkpoint.extra}
    return json.dumps(state).encode() + b"\n" + tensors_to_bytes(checkpoint.tensors)


def from_bytes(content: bytes) -> Checkpoint:
    line, _, tensors = content.partition(b"\n")
    return Checkpoint(**json.loads(line), tensors=tensors_from_bytes(tensors))
