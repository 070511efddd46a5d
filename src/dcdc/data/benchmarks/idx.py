"""MNIST and Fashion-MNIST: grey images and labels in IDX files, plain or gzipped."""

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dcdc.data.arrays import from_arrays
from dcdc.data.benchmarks.original_files import (
    check_splits,
    class_codes,
    naming_what_cannot_be_read,
    numbered_in,
)
from dcdc.data.image_set import ImageSet, check_side
from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

DIGIT_CLASSES = tuple("0123456789")
FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_STEMS = {"train": "train", "test": "t10k"}
_MOST_BYTES = 2**28  # MNIST has 47 MB
_UNSIGNED_BYTES = 0x08


def load_idx_digits(
    folder: Path,
    splits: Sequence[str],
    size: int | None = None,
    *,
    class_names: tuple[str, ...] = DIGIT_CLASSES,
) -> ImageSet:
    """Splits `train` and `test`; a plain file wins over a gzipped one."""
    check_side(size)
    check_splits(splits, tuple(_STEMS), f"{folder}")
    with naming_what_cannot_be_read(folder):
        files = [_found(folder, _STEMS[split], "images", 3) for split in splits]
        images = [_read(file, 3) for file in files]
        codes = [
            _codes(_found(folder, _STEMS[split], "labels", 1), part, len(class_names), file.name)
            for split, part, file in zip(splits, images, files, strict=True)
        ]
    if len({part.shape[1:] for part in images}) > 1:
        raise InputError(f"the splits in {folder} have images of different sizes: get them again")
    names = [
        name
        for split, part in zip(splits, images, strict=True)
        for name in numbered_in(split, len(part))
    ]
    pixels = np.concatenate(images)[..., None]
    unlabelled = from_arrays(pixels, names=tuple(names), where=f"{folder}", size=size)
    return replace(unlabelled, targets=np.concatenate(codes), class_names=class_names)


def _found(folder: Path, stem: str, what: str, n_axes: int) -> Path:
    spellings = [f"{stem}-{what}{mark}idx{n_axes}-ubyte" for mark in "-."]
    candidates = [folder / f"{name}{suffix}" for suffix in ("", ".gz") for name in spellings]
    for path in candidates:
        if path.is_file():
            return path
    raise InputError(f"{folder} lacks {spellings[0]}, plain or as .gz: get it again")


def _read(path: Path, n_axes: int) -> NDArray[np.uint8]:
    try:
        if path.suffix != ".gz":
            with require_regular(path).open("rb") as file:
                return _parsed(file, path, n_axes, path.stat().st_size)
        with gzip.open(path) as file:
            return _parsed(file, path, n_axes, None)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is damaged or cut short ({reason}): get it again") from None


def _parsed(
    file: IO[bytes] | gzip.GzipFile, path: Path, n_axes: int, n_file_bytes: int | None
) -> NDArray[np.uint8]:
    """What the header declares, held against the file's length before it is read, if known."""
    n_header = 4 + 4 * n_axes
    header = file.read(n_header)
    if header[:4] != bytes([0, 0, _UNSIGNED_BYTES, n_axes]) or len(header) < n_header:
        raise InputError(
            f"{path} does not start as an IDX file of bytes in {n_axes} dimensions: get it again"
        )
    shape = tuple(int(length) for length in np.frombuffer(header, ">u4", offset=4))
    declared, n_bytes = " x ".join(map(str, shape)), math.prod(shape)
    if not 0 < n_bytes <= _MOST_BYTES:
        raise InputError(f"{path} declares {declared} bytes, which cannot be: get it again")
    fits = n_file_bytes is None or n_file_bytes == n_header + n_bytes
    data = file.read(n_bytes + 1) if fits else b""  # one more, to see that there are too many
    if len(data) != n_bytes:
        raise InputError(
            f"{path} has more or fewer than the {declared} bytes that it declares: it is damaged "
            "or cut short; get it again"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)


def _codes(path: Path, images: NDArray[np.uint8], n_classes: int, of: str) -> NDArray[np.int64]:
    return class_codes(_read(path, 1), len(images), n_classes, path, of)
