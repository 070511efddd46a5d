"""Named arrays in one `.npz` file, read without pickle: no more bytes than their headers may say.

A schema names the sides of its arrays. Sides of one name are of one length.
"""

import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dcdc.stored.reading import MIB, StoredFile, opened_regular
from dcdc.stored.schema import Unfit


@dataclass(frozen=True)
class Array:
    kind: str
    """NumPy's letter: f, i or U. Values of f must be finite."""
    sides: tuple[str | int, ...] = ()
    is_needed: bool = True


@dataclass(frozen=True)
class StoredArrays(StoredFile):
    schema: Mapping[str, Array]
    most_bytes: int = 1024 * MIB
    """Of the file, and of its arrays together."""

    def read(self, path: Path, **sides: int) -> dict[str, NDArray[Any]]:
        """Those of the schema; `sides` that are known beforehand, by name."""
        try:
            with opened_regular(path, self.most_bytes) as file:
                return self._read(file, dict(sides))
        except Exception as error:  # zipfile, zlib and numpy have no common one for damaged bytes
            raise self.damaged(path, error) from None

    def _read(self, file: BinaryIO, sides: dict[str, int]) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        room = self.most_bytes
        with zipfile.ZipFile(file) as archive:
            members = set(archive.namelist())
            for name, wanted in self.schema.items():
                if f"{name}.npy" in members:
                    with archive.open(f"{name}.npy") as member:
                        found[name] = _read_array(name, member, wanted, sides, room)
                    room -= found[name].nbytes
                elif wanted.is_needed:
                    raise Unfit(name, "is missing")
        return found


@dataclass(frozen=True)
class StoredRows(StoredFile):
    """One array whose rows are read a few at a time: all of them may be too many for memory."""

    schema: Mapping[str, Array]
    most_bytes: int = 1024 * MIB

    def blocks(self, path: Path, n_at_once: int, **sides: int) -> Iterator[NDArray[Any]]:
        """In their order. Whether they are whole is known when the last was read."""
        ((name, wanted),) = self.schema.items()
        try:
            with (
                opened_regular(path, self.most_bytes) as file,
                zipfile.ZipFile(file) as archive,
                archive.open(f"{name}.npy") as member,
            ):
                shape, in_columns, dtype = _checked_header(
                    name, member, wanted, dict(sides), self.most_bytes
                )
                if in_columns:
                    raise Unfit(name, "is stored by columns, it should be by rows")
                for start in range(0, shape[0], n_at_once):
                    some = (min(n_at_once, shape[0] - start), *shape[1:])
                    yield _read_rows(name, member, some, dtype)
                _require_end(name, member)
        except Exception as error:  # as above
            raise self.damaged(path, error) from None


def _read_array(
    name: str, member: Any, wanted: Array, sides: dict[str, int], room: int
) -> NDArray[Any]:
    shape, in_columns, dtype = _checked_header(name, member, wanted, sides, room)
    array = _read_rows(name, member, shape, dtype, in_columns)
    _require_end(name, member)
    return array


def _checked_header(
    name: str, member: Any, wanted: Array, sides: dict[str, int], room: int
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    shape, in_columns, dtype = _read_header(name, member)
    if dtype.kind != wanted.kind:
        raise Unfit(name, f"is of type {dtype}, it should be of kind {wanted.kind!r}")
    expected = " x ".join(map(str, wanted.sides)) or "single"
    if len(shape) != len(wanted.sides):
        raise Unfit(name, f"has shape {shape}, it should be {expected}")
    for side, length in zip(wanted.sides, shape, strict=True):
        known = side if isinstance(side, int) else sides.setdefault(side, length)
        if length != known:
            raise Unfit(name, f"has shape {shape}, it should be {expected} with {known} for {side}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > room:
        raise Unfit(name, f"declares {n_bytes:,} bytes, more than such a file may hold")
    return shape, in_columns, dtype


def _read_rows(
    name: str, member: Any, shape: tuple[int, ...], dtype: np.dtype[Any], in_columns: bool = False
) -> NDArray[Any]:
    n_bytes = math.prod(shape) * dtype.itemsize
    content = member.read(n_bytes)
    if len(content) < n_bytes:
        raise Unfit(name, "is cut short")
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if in_columns else "C")
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise Unfit(name, "has values that are not finite")
    return array


def _require_end(name: str, member: Any) -> None:
    if member.read(1):  # at its end, zipfile compares its own check sum
        raise Unfit(name, "is longer than it says")


def _read_header(name: str, member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise Unfit(name, f"is of version {version}")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(member)
