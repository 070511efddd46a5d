"""The tensors of a safetensors file as arrays over the file; bytes are read as they are used."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.regular_files import require_regular
from dcdc.data.vector_rows import BFLOAT16
from dcdc.errors import InputError

_TYPES = {
    "BOOL": np.dtype("?"),
    "BF16": BFLOAT16,
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
    **{f"I{8 * n}": np.dtype(f"<i{n}") for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": np.dtype(f"<u{n}") for n in (1, 2, 4, 8)},
}


def mapped_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """By name, bfloat16 as `BFLOAT16`; those of other types that NumPy lacks are left out."""
    header, begin = _header(path)
    found = {}
    for name, about in header.items():
        dtype, shape = str(about["dtype"]), tuple(about["shape"])
        offset = begin + about["data_offsets"][0]
        if dtype in _TYPES:
            found[name] = _mapped(path, _TYPES[dtype], shape, offset)
    return found


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """What the file says of its tensors, and where their bytes begin."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(require_regular(path), framework="numpy"):  # checks every length and offset
            pass
        with path.open("rb") as file:
            n_bytes = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(n_bytes))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (SafetensorError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path} is no safetensors file, damaged or cut short ({reason}): write or get it again"
        ) from None
    header.pop("__metadata__", None)
    return header, 8 + n_bytes


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    if 0 in shape:  # nothing can be mapped of no bytes
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)
