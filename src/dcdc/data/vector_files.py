"""Files of feature vectors: which hold some, and the set that each becomes.

`.npy`, `.npz` and `.safetensors` are read here; Parquet and tables of numbers have own files.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dcdc.data.arrays import IMAGE_KEYS, TARGET_KEYS, opened_numpy
from dcdc.data.fingerprint import file_fingerprint
from dcdc.data.path_list import NO_TARGET, unknown_column
from dcdc.data.vector_arrays import as_matrix, vector_set_of
from dcdc.data.vector_facts import facts_of
from dcdc.data.vector_parquet import holds_vector_column, load_vector_parquet
from dcdc.data.vector_rows import BFLOAT16, MAP_ABOVE_BYTES, Reading, content_key
from dcdc.data.vector_set import VectorSet
from dcdc.data.vector_table import is_table_of_numbers, load_vector_table
from dcdc.errors import InputError, no_meaning
from dcdc.stored.reading import require_regular

VECTOR_KEYS = ("vectors", "features", "embeddings", "x", "data", "arr_0")
_OWN_KEYS = VECTOR_KEYS[:3]  # the others may be of images too: the shape tells
_BESIDE = {
    "targets": TARGET_KEYS,
    "names": ("names",),
    "files": ("files", "paths"),
    "copies": ("copies",),
}
_TYPES = {
    "BOOL": np.dtype("?"),
    "BF16": BFLOAT16,
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
    **{f"I{8 * n}": np.dtype(f"<i{n}") for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": np.dtype(f"<u{n}") for n in (1, 2, 4, 8)},
}


def holds_vectors(source: str | Path, column: str | None = None) -> bool:
    """By headers alone; False for images, and for what cannot be read as either."""
    path = Path(source)
    suffix = path.suffix.lower()
    try:
        if not path.is_dir():
            require_regular(path)
        if path.is_dir() or suffix == ".parquet":
            return holds_vector_column(path, column)
        if suffix == ".npy":
            with path.open("rb") as file:
                return _is_matrix(file)
        if suffix == ".npz":
            return column is not None or _archive_key(_archived(path), path, None) is not None
        if suffix in (".csv", ".tsv"):
            return is_table_of_numbers(path)
    except Exception:  # numpy, zipfile and csv have no common one; the reading itself tells
        return False
    return suffix == ".safetensors"


def load_vectors(source: str | Path, reading: Reading) -> VectorSet:
    """A source that `holds_vectors`."""
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".npy", ".csv", ".tsv"):
        _refuse("column", reading.column, path, "a column of Parquet, or one of several arrays")
    if path.is_dir() or suffix == ".parquet":
        return load_vector_parquet(path, reading)
    if suffix in (".csv", ".tsv"):
        return load_vector_table(path, reading)
    if reading.target not in NO_TARGET:
        _refuse("target", reading.target, path, "a column of Parquet or of a list")
    if suffix == ".npy":
        with opened_numpy(path, "vectors") as array:
            found = {"vectors": _held_if_small(array)}
    elif suffix == ".npz":
        key = _archive_key(_archived(path), path, reading.column)
        with opened_numpy(path, "vectors") as archive:
            found = _renamed(archive, key or VECTOR_KEYS[0])
    else:
        tensors = mapped_tensors(path)
        found = _renamed(tensors, _tensor_key(tensors, path, reading.column))
    return _from_arrays(path, found, reading)


def _renamed(arrays: Mapping[str, NDArray[Any]], key: str) -> dict[str, NDArray[Any]]:
    """The array `key` as `vectors`, and what lies beside it under known names."""
    found = {"vectors": _held_if_small(arrays[key])}
    for name, keys in _BESIDE.items():
        at = next((at for at in keys if at in arrays and at != key), None)
        if at is not None:
            found[name] = _held_if_small(arrays[at])
    return found


def _from_arrays(path: Path, found: Mapping[str, NDArray[Any]], reading: Reading) -> VectorSet:
    where = str(path)
    vectors, copies = as_matrix(found["vectors"], where), found.get("copies")
    facts = facts_of(
        len(vectors),
        None if reading.target in NO_TARGET else found.get("targets"),
        found.get("names"),
        found.get("files"),
        where,
        path.absolute().parent,
    )
    return vector_set_of(
        vectors,
        facts,
        where,
        reading,
        copies=None if copies is None else as_matrix(copies, f"the copies of {where}"),
        key=content_key(file_fingerprint(path), reading.column or ""),
    )


def _held_if_small(array: NDArray[Any]) -> NDArray[Any]:
    """Small files may change on disk meanwhile."""
    return array if array.nbytes > MAP_ABOVE_BYTES else np.array(array)


def _archived(path: Path) -> dict[str, bool]:
    """The names in an `.npz`, and whether each is N x D numbers, without reading them."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                found[name.removesuffix(".npy")] = _is_matrix(file)  # type: ignore[arg-type]
    return found


def _archive_key(arrays: Mapping[str, bool], path: Path, column: str | None) -> str | None:
    """Where the vectors are; images win where both are there, unless `column` names an array."""
    if column is not None:
        if column not in arrays:
            raise unknown_column(column, list(arrays), path, "array")
        return column
    if arrays.get("images") is False:
        return None
    known = (*_OWN_KEYS, *IMAGE_KEYS, *VECTOR_KEYS)
    first = next((key for key in known if key in arrays), None)
    return first if first in _OWN_KEYS or (first and arrays[first]) else None


def _is_matrix(file: BinaryIO) -> bool:
    """By the header of an `.npy`."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:  # (3, 0) is for fields with names
        return False
    shape, _, dtype = read(file)
    return len(shape) == 2 and dtype.kind not in "OV"


def _tensor_key(tensors: Mapping[str, NDArray[Any]], path: Path, column: str | None) -> str:
    if column is not None:
        if column not in tensors:
            raise unknown_column(column, list(tensors), path, "tensor")
        return column
    known = next((key for key in _OWN_KEYS if key in tensors), None)
    if known is not None:
        return known
    found = [
        name
        for name, tensor in tensors.items()
        if tensor.ndim == 2 and tensor.dtype.kind == "f" and name != "copies"
    ]
    if len(found) == 1:
        return found[0]
    shown = f"{', '.join(found[:5])}{', ...' if len(found) > 5 else ''}"
    fault = f"{len(found)} matrices ({shown})" if found else "no matrix of floats"
    ways = (f"name one {', '.join(_OWN_KEYS[:-1])} or {_OWN_KEYS[-1]}", "name it by {column}")
    raise InputError(f"{path} holds {fault}", remedy=ways if found else ways[:1])


def _refuse(parameter: str, value: str | None, path: Path, names: str) -> None:
    if value:
        raise no_meaning(parameter, value, f"{path}: it names {names}")


def mapped_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """By name, bfloat16 as `BFLOAT16`; those of other types that NumPy lacks are left out."""
    header, begin = _tensor_header(path)
    found = {}
    for name, about in header.items():
        dtype, shape = str(about["dtype"]), tuple(about["shape"])
        offset = begin + about["data_offsets"][0]
        if dtype in _TYPES:
            found[name] = _mapped_tensor(path, _TYPES[dtype], shape, offset)
    return found


def _tensor_header(path: Path) -> tuple[dict[str, Any], int]:
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


def _mapped_tensor(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int
) -> NDArray[Any]:
    if 0 in shape:  # nothing can be mapped of no bytes
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)
