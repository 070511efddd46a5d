"""Tensors on disk by safetensors: never pickle, and a full disk is an OSError as everywhere."""

import errno
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, load_file, save, save_file
from torch import Tensor


class DamagedTensorFileError(Exception):
    """Truncated or altered."""


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    on_host = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.touch()
    mode = path.stat().st_mode  # safetensors would leave the file to its owner alone
    try:
        save_file(on_host, path, metadata=metadata)
        path.chmod(mode)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, str(error), str(path)) from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DamagedTensorFileError(str(error)) from None


def tensors_to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def tensors_from_bytes(content: bytes) -> dict[str, Tensor]:
    return load(content)
