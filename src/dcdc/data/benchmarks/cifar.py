"""CIFAR-10 and CIFAR-100 in their binary and their Python version: 32 x 32 pixels, colour.

An image lies as three planes, red, green, blue, each row by row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcdc.data.benchmarks.inert_pickle import load_inert
from dcdc.data.benchmarks.original_files import (
    check_class_names,
    check_splits,
    naming_what_cannot_be_read,
    numbered_in,
    text_lines,
)
from dcdc.data.decode import square_images
from dcdc.data.image_set import ImageSet, check_side
from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle",
    "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
CIFAR100_COARSE_CLASSES = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes",
    "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates", "people",
    "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Part:
    """What one file holds: images N x 3 x H x W, their labels, and their names if it has them."""

    images: NDArray[np.uint8]
    codes: NDArray[np.int64]
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Version:
    """The files of a data set in one of its versions, and how to read them."""

    subfolder: str
    files: Mapping[str, tuple[str, ...]]  # of each split
    names_file: str
    read_part: Callable[[Path], _Part]
    read_class_names: Callable[[Path], Sequence[str]]


def load_cifar10(folder: Path, splits: Sequence[str], size: int | None = None) -> ImageSet:
    """Splits `train` and `test`; from the binary files if both versions are there."""
    batches = tuple(f"data_batch_{number}" for number in range(1, 6))
    binary = _Version(
        subfolder="cifar-10-batches-bin",
        files={"train": tuple(f"{name}.bin" for name in batches), "test": ("test_batch.bin",)},
        names_file="batches.meta.txt",
        read_part=lambda path: _read_records(path, CIFAR10_CLASSES, n_labels=1, label=0),
        read_class_names=text_lines,
    )
    python = _Version(
        subfolder="cifar-10-batches-py",
        files={"train": batches, "test": ("test_batch",)},
        names_file="batches.meta",
        read_part=lambda path: _read_pickle(path, CIFAR10_CLASSES, b"labels"),
        read_class_names=lambda path: _pickled_names(path, b"label_names"),
    )
    return _load(folder, splits, size, "CIFAR-10", CIFAR10_CLASSES, (binary, python))


def load_cifar100(
    folder: Path, splits: Sequence[str], size: int | None = None, *, coarse: bool = False
) -> ImageSet:
    """As `load_cifar10`; `coarse` takes the 20 super-classes instead of the 100 classes."""
    classes = CIFAR100_COARSE_CLASSES if coarse else CIFAR100_CLASSES
    grain = "coarse" if coarse else "fine"
    binary = _Version(
        subfolder="cifar-100-binary",
        files={"train": ("train.bin",), "test": ("test.bin",)},
        names_file=f"{grain}_label_names.txt",
        read_part=lambda path: _read_records(path, classes, n_labels=2, label=0 if coarse else 1),
        read_class_names=text_lines,
    )
    python = _Version(
        subfolder="cifar-100-python",
        files={"train": ("train",), "test": ("test",)},
        names_file="meta",
        read_part=lambda path: _read_pickle(path, classes, f"{grain}_labels".encode()),
        read_class_names=lambda path: _pickled_names(path, f"{grain}_label_names".encode()),
    )
    return _load(folder, splits, size, "CIFAR-100", classes, (binary, python))


def _load(
    folder: Path,
    splits: Sequence[str],
    size: int | None,
    title: str,
    classes: tuple[str, ...],
    versions: Sequence[_Version],
) -> ImageSet:
    check_side(size)
    check_splits(splits, tuple(versions[0].files), title)
    with naming_what_cannot_be_read(folder):
        version, place = _most_complete(folder, splits, title, versions)
        names_file = place / version.names_file
        if names_file.is_file():
            found = version.read_class_names(names_file)
            classes = check_class_names(found, len(classes), names_file)
        parts = {
            split: [version.read_part(place / name) for name in version.files[split]]
            for split in splits
        }
    every = [part for split in splits for part in parts[split]]
    images = np.concatenate([part.images for part in every]).transpose(0, 2, 3, 1)
    return ImageSet(
        images=square_images(images, size or _SIDE),
        names=tuple(name for split in splits for name in _names(split, parts[split])),
        targets=np.concatenate([part.codes for part in every]),
        class_names=classes,
    )


def _most_complete(
    folder: Path, splits: Sequence[str], title: str, versions: Sequence[_Version]
) -> tuple[_Version, Path]:
    """The first version that lacks no file, and where it lies."""

    def lacking(found: tuple[_Version, Path]) -> list[str]:
        version, place = found
        names = [name for split in splits for name in version.files[split]]
        return [name for name in names if not (place / name).is_file()]

    places = [
        (version, place) for version in versions for place in (folder, folder / version.subfolder)
    ]
    best = min(places, key=lambda found: len(lacking(found)))
    if lacking(best):
        raise InputError(f"{best[1]} lacks {', '.join(lacking(best))} of {title}: get it again")
    return best


def _names(split: str, parts: Sequence[_Part]) -> tuple[str, ...]:
    if all(part.names for part in parts):
        return tuple(f"{split}/{name}" for part in parts for name in part.names)
    return numbered_in(split, sum(len(part.images) for part in parts))


def _read_records(path: Path, classes: Sequence[str], *, n_labels: int, label: int) -> _Part:
    """Records of `n_labels` bytes, of which number `label` counts, then the pixels."""
    length, n_bytes = n_labels + _PIXELS, path.stat().st_size
    if n_bytes == 0 or n_bytes % length:
        raise InputError(
            f"{path} has {n_bytes} bytes, not a whole number of records of {length}: it is damaged "
            "or cut short; get it again"
        )
    records = np.fromfile(require_regular(path), np.uint8).reshape(-1, length)
    return _Part(
        images=records[:, n_labels:].reshape(-1, 3, _SIDE, _SIDE),
        codes=_codes(records[:, label].tolist(), len(records), classes, path),
        names=(),
    )


def _read_pickle(path: Path, classes: Sequence[str], label_key: bytes) -> _Part:
    content = _pickled_dict(path)
    images = content.get(b"data")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise InputError(f"{path} has no images under 'data': it is damaged; get it again")
    if images.ndim != 2 or images.shape[1] != _PIXELS:
        raise InputError(
            f"{path} has images of shape {images.shape} instead of N x {_PIXELS}: it is damaged; "
            "get it again"
        )
    names = content.get(b"filenames", [])
    if not isinstance(names, list) or len(names) not in (0, len(images)):
        raise InputError(f"{path} has not one file name for each image: get it again")
    return _Part(
        images=images.reshape(-1, 3, _SIDE, _SIDE),
        codes=_codes(content.get(label_key), len(images), classes, path),
        names=tuple(_text(name, path) for name in names),
    )


def _pickled_names(path: Path, key: bytes) -> list[str]:
    names = _pickled_dict(path).get(key)
    if not isinstance(names, list):
        raise InputError(f"{path} has no list under {key.decode()!r}: get it again")
    return [_text(name, path) for name in names]


def _pickled_dict(path: Path) -> dict[bytes, Any]:
    """Keys as bytes, as the originals have them; a copy made by Python 3 may have text."""
    content = load_inert(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no dict: it is damaged; get it again")
    return {key.encode() if isinstance(key, str) else key: content[key] for key in content}


def _text(name: Any, path: Path) -> str:
    if not isinstance(name, bytes | str):
        raise InputError(f"{path} has a name that is no text: it is damaged; get it again")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _codes(labels: Any, n_images: int, classes: Sequence[str], path: Path) -> NDArray[np.int64]:
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if not isinstance(listed, list) or len(listed) != n_images:
        raise InputError(f"{path} has not one label for each image: get it again")
    for label in listed:
        if type(label) is not int or not 0 <= label < len(classes):
            raise InputError(
                f"{path} has the label {label!a:.40}, not one from 0 to {len(classes) - 1}: it is "
                "damaged; get it again"
            )
    return np.array(listed, np.int64)
