"""Folders of original files: known by their names, and what their readers share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

_TELLTALES = {
    "cifar10": ("data_batch_1.bin", "data_batch_1"),
    "cifar100": ("fine_label_names.txt", "train.bin"),
    "stl10": ("train_X.bin",),
    "tiny-imagenet": ("wnids.txt",),
    "mnist": tuple(
        f"train-images{dot}idx3-ubyte{suffix}" for dot in ("-", ".") for suffix in ("", ".gz")
    ),
}
_CIFAR100_PYTHON = ("train", "test", "meta")


def check_splits(splits: Sequence[str], known: Sequence[str], title: str) -> None:
    for split in splits:
        if split not in known:
            raise InputError(f"{title} has no split {split!r}: give {' or '.join(known)}")
    if not splits or len(set(splits)) < len(splits):
        raise InputError(
            f"the splits of {title} are {', '.join(splits) or 'none'}: give at least one of "
            f"{', '.join(known)}, and each once"
        )


def numbered_in(split: str, n_images: int) -> tuple[str, ...]:
    """`train/00000`, ...: for images that have no name of their own."""
    width = max(5, len(str(n_images - 1)))
    return tuple(f"{split}/{index:0{width}d}" for index in range(n_images))


def text_lines(path: Path) -> list[str]:
    """The lines that are not empty."""
    try:
        text = require_regular(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file: it is damaged; get it again") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def check_class_names(names: Sequence[str], n_classes: int, path: Path) -> tuple[str, ...]:
    if len(names) != n_classes or len(set(names)) < n_classes:
        raise InputError(
            f"{path} has {len(names)} class names instead of {n_classes} different ones: get it "
            "again"
        )
    return tuple(names)


def class_codes(
    labels: NDArray[np.uint8],
    n_images: int,
    n_classes: int,
    path: Path,
    images: str,
    *,
    first: int = 0,
) -> NDArray[np.int64]:
    """From 0; `first` is the first class's label in the file, `images` the name of the other."""
    if len(labels) != n_images:
        raise InputError(
            f"{path} has {len(labels)} labels for the {n_images} images of {images}: it is damaged "
            "or cut short, or the other one; get it again"
        )
    last = first + n_classes - 1
    wrong = labels[(labels < first) | (labels > last)]
    if len(wrong):
        raise InputError(
            f"{path} has the label {wrong[0]}, not one from {first} to {last}: it is damaged; get "
            "it again"
        )
    return labels.astype(np.int64) - first


@contextmanager
def naming_what_cannot_be_read(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot read {error.filename or folder}: {error.strerror}; check its permissions, or "
            "get it again"
        ) from None


def recognised(folder: Path) -> str | None:
    """The benchmark's name; the idx files of MNIST and Fashion-MNIST look alike."""
    for name, files in _TELLTALES.items():
        if any((folder / file).is_file() for file in files):
            return name
    if all((folder / file).is_file() for file in _CIFAR100_PYTHON):
        return "cifar100"
    return None
