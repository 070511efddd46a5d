"""Tiny ImageNet: 200 classes of 64 x 64 pixels, as files."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dcdc.data.benchmarks.class_folders import class_files, files_listing
from dcdc.data.benchmarks.original_files import check_splits, naming_what_cannot_be_read, text_lines
from dcdc.data.listing import Listing
from dcdc.errors import InputError

_SUBFOLDER = "tiny-imagenet-200"


def list_tiny_imagenet(folder: Path, splits: Sequence[str]) -> Listing:
    """Splits `train` and `val`; the classes in the order of `wnids.txt`."""
    check_splits(splits, ("train", "val"), "Tiny ImageNet")
    with naming_what_cannot_be_read(folder):
        place = folder / _SUBFOLDER if (folder / _SUBFOLDER).is_dir() else folder
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
