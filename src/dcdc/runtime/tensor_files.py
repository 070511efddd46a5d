"""Tensors on disk by safetensors: never pickle, and a full disk is an OSError as everywhere.

torch is imported when a tensor is: who reads the rest of a run folder does not wait for it.
"""

import errno
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from dcdc.stored.reading import CHECKSUM, opened_regular, parse_json
from dcdc.stored.schema import Unfit

if TYPE_CHECKING:
    from torch import Tensor

_NOTE = "dcdc"


class DamagedTensorFileError(Exception):
    """Truncated or altered, or no file of tensors."""


def save_tensors(
    path: Path, tensors: "Mapping[str, Tensor]", note: Mapping[str, Any] | None = None
) -> None:
    """With a `note`, plain values, goes a check sum of all there is; without, the caller keeps
    one."""
    from safetensors.torch import save_file

    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = None
    if note is not None:  # one entry: safetensors writes several in any order
        metadata = {_NOTE: json.dumps({**note, CHECKSUM: _checksum(on_host, note)})}
    path.touch()
    mode = path.stat().st_mode  # safetensors would leave the file to its owner alone
    try:
        save_file(on_host, path, metadata=metadata)
        path.chmod(mode)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, str(error), str(path)) from None


def load_tensors(path: Path) -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """And their note. A file of an older version has no check sum."""
    try:
        opened_regular(path).close()
        with safe_open(path, framework="pt") as file:
            note = parse_json((file.metadata() or {}).get(_NOTE, "{}").encode())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, Unfit) as error:
        problem = error.strerror if isinstance(error, OSError) else None
        raise DamagedTensorFileError(problem or str(error)) from None
    except Exception as error:  # safetensors has its own, and torch others
        raise DamagedTensorFileError(" ".join(str(error).split())) from None
    if not isinstance(note, dict):
        raise DamagedTensorFileError("its note is no JSON object")
    stored = note.pop(CHECKSUM, None)
    if stored is not None and stored != _checksum(tensors, note):
        raise DamagedTensorFileError(f"was altered: its {CHECKSUM} is of other content")
    return tensors, note


def not_finite(tensors: "Mapping[str, Tensor]") -> str | None:
    """The name of the first tensor that holds NaN or infinity."""
    floats = ((name, each) for name, each in tensors.items() if each.is_floating_point())
    return next((name for name, each in floats if not each.isfinite().all()), None)


def _checksum(tensors: "Mapping[str, Tensor]", note: Mapping[str, Any]) -> str:
    import torch

    digest = hashlib.sha256(json.dumps(note).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


def tensors_to_bytes(tensors: "Mapping[str, Tensor]") -> bytes:
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def tensors_from_bytes(content: bytes) -> "dict[str, Tensor]":
    from safetensors.torch import load

    return load(content)
