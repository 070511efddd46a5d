"""Tiny ImageNet, ImageNet-10 and ImageNet-Dogs: a folder of image files for each class."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dcdc.data.benchmarks.original_files import check_splits, naming_what_cannot_be_read, text_lines
from dcdc.data.fingerprint import files_fingerprint, stat_of
from dcdc.data.folder import file_inside
from dcdc.data.listing import Encoded, Listing
from dcdc.errors import InputError
from dcdc.printable import utf8_name

_SUFFIXES = (".jpeg", ".jpg")
_MOST_NAMED = 20  # ids in one line of a message
IMAGENET_10 = {
    "n02056570": "king penguin",
    "n02085936": "Maltese dog",
    "n02128757": "snow leopard",
    "n02690373": "airliner",
    "n02692877": "airship",
    "n03095699": "container ship",
    "n04254680": "soccer ball",
    "n04285008": "sports car",
    "n04467665": "trailer truck",
    "n07747607": "orange",
}
IMAGENET_DOGS = {
    "n02085936": "Maltese dog",
    "n02086646": "Blenheim spaniel",
    "n02088238": "basset",
    "n02091467": "Norwegian elkhound",
    "n02097130": "giant schnauzer",
    "n02099601": "golden retriever",
    "n02101388": "Brittany spaniel",
    "n02101556": "clumber",
    "n02102177": "Welsh springer spaniel",
    "n02105056": "groenendael",
    "n02105412": "kelpie",
    "n02105855": "Shetland sheepdog",
    "n02107142": "Doberman",
    "n02110958": "pug",
    "n02112137": "chow",
}
_TRAIN_FOLDERS = (".", "train", "ILSVRC/Data/CLS-LOC/train")
_TINY_FOLDER = "tiny-imagenet-200"


def class_files(where: Path, folders: Mapping[str, Path]) -> list[tuple[Path, int]]:
    """The images of each folder, sorted, with its number; each must have at least one."""
    with naming_what_cannot_be_read(where):
        found = {wnid: _image_files(folder) for wnid, folder in folders.items()}
    missing = [wnid for wnid, files in found.items() if not files]
    if missing:
        named = ", ".join(missing[:_MOST_NAMED])
        rest = len(missing) - _MOST_NAMED
        raise InputError(
            f"{where} lacks images of {named}{f' and {rest} more classes' if rest > 0 else ''}: "
            "unpack these classes there, or get it again"
        )
    return [(path, code) for code, files in enumerate(found.values()) for path in files]


def files_listing(
    root: Path, files: Sequence[tuple[Path, int]], class_names: tuple[str, ...]
) -> Listing:
    """Files below `root` with the codes of their classes."""
    names = [path.relative_to(root).as_posix() for path, _ in files]
    resolved_root = root.resolve()

    def encoded(start: int) -> Iterator[Encoded]:
        return (file_inside(resolved_root, name) for name in names[start:])

    return Listing(
        where=str(root),
        names=tuple(map(utf8_name, names)),
        encoded=encoded,
        fingerprint=files_fingerprint(root, ((name, stat_of(root / name)) for name in names)),
        targets=np.array([code for _, code in files], np.int64),
        class_names=class_names,
    )


def _image_files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        path for path in paths if path.suffix.lower() in _SUFFIXES and not path.name.startswith(".")
    ]


def list_imagenet_subset(folder: Path, wnids: Mapping[str, str]) -> Listing:
    """The classes of `wnids` (id -> name), in its order; `folder` is or holds a train folder."""
    places = [folder / name for name in _TRAIN_FOLDERS]
    with naming_what_cannot_be_read(folder):
        place = max(places, key=lambda place: sum((place / wnid).is_dir() for wnid in wnids))
    files = class_files(place, {wnid: place / wnid for wnid in wnids})
    return files_listing(place, files, tuple(wnids.values()))


def list_tiny_imagenet(folder: Path, splits: Sequence[str]) -> Listing:
    """Splits `train` and `val`; the classes in the order of `wnids.txt`."""
    check_splits(splits, ("train", "val"), "Tiny ImageNet")
    with naming_what_cannot_be_read(folder):
        place = folder / _TINY_FOLDER if (folder / _TINY_FOLDER).is_dir() else folder
        wnids = list(dict.fromkeys(text_lines(place / "wnids.txt")))
        class_names = _class_names(place / "words.txt", wnids)
    if not wnids:
        raise InputError(f"{place / 'wnids.txt'} is empty: get it again")
    read = {"train": _train_files, "val": _val_files}
    files = [file for split in splits for file in read[split](place, wnids)]
    return files_listing(place, files, class_names)


def _train_files(place: Path, wnids: Sequence[str]) -> list[tuple[Path, int]]:
    train = place / "train"
    return class_files(train, {wnid: train / wnid / "images" for wnid in wnids})


def _val_files(place: Path, wnids: Sequence[str]) -> list[tuple[Path, int]]:
    """Only what the annotations list, in their order."""
    annotations, images = place / "val" / "val_annotations.txt", place / "val" / "images"
    codes = {wnid: code for code, wnid in enumerate(wnids)}
    files = []
    with naming_what_cannot_be_read(place):
        for line in text_lines(annotations):
            name, wnid, *_box = [*line.split("\t"), ""]
            if wnid not in codes:
                raise InputError(
                    f"{annotations} gives {name!a:.80} the class {wnid!a:.40}, which wnids.txt "
                    "lacks: get it again"
                )
            path = images / name
            if path.parent != images or not path.is_file():
                raise InputError(
                    f"{annotations} lists {name!a:.80}, which {images} lacks: get it again"
                )
            files.append((path, codes[wnid]))
    if not files:
        raise InputError(f"{annotations} lists no image: get it again")
    return files


def _class_names(words: Path, wnids: Sequence[str]) -> tuple[str, ...]:
    """The first of each class's words, with the id where two classes share it."""
    known = dict(line.split("\t", 1) for line in text_lines(words) if "\t" in line)
    first = {wnid: known.get(wnid, wnid).partition(",")[0].strip() for wnid in wnids}
    shared = Counter(first.values())
    return tuple(f"{name} ({wnid})" if shared[name] > 1 else name for wnid, name in first.items())
