"""STL-10: 96 x 96 pixels, colour, a few thousand with a label and 100,000 without.

The files hold each colour plane column by column, and labels from 1.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcdc.data.benchmarks.original_files import (
    check_class_names,
    check_splits,
    class_codes,
    naming_what_cannot_be_read,
    numbered_in,
    text_lines,
)
from dcdc.data.decode import square_images
from dcdc.data.image_set import ImageSet, check_side
from dcdc.errors import InputError
from dcdc.stored.reading import require_regular

STL10_CLASSES = (
    "airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck",
)  # fmt: skip
_SPLITS = ("train", "test", "unlabeled")
_SIDE = 96
_IMAGE_BYTES = 3 * _SIDE * _SIDE


def load_stl10(
    folder: Path,
    splits: Sequence[str],
    size: int | None = None,
    *,
    extra_splits: Sequence[str] = (),
) -> ImageSet:
    """Splits `train`, `test` or, alone and without targets, `unlabeled`.

    `extra_splits` become the set's extra images; one alone stays mapped unless `size` resizes it.
    """
    check_side(size)
    check_splits(splits, _SPLITS, "STL-10")
    if "unlabeled" in splits and len(splits) > 1:
        raise InputError(
            f"the splits of STL-10 are {', '.join(splits)}: unlabeled has no labels; take it "
            "alone, or as extra images"
        )
    if extra_splits:
        check_splits(extra_splits, _SPLITS, "STL-10")
    with naming_what_cannot_be_read(folder):
        place = folder / "stl10_binary" if (folder / "stl10_binary").is_dir() else folder
        for split in extra_splits:
            path = place / f"{split}_X.bin"
            if not path.is_file():
                raise InputError(
                    f"{path} is not there, which trains the over-clustering head: get it again, or "
                    f"leave it out by naming stl10@{'+'.join(splits)}:{folder}"
                )
        mapped = {split: _mapped(place, split) for split in (*splits, *extra_splits)}
        targets: NDArray[np.int64] | None = None
        class_names: tuple[str, ...] = ()
        if "unlabeled" not in splits:
            class_names = _class_names(place)
            codes = [
                class_codes(
                    np.fromfile(require_regular(path := place / f"{split}_y.bin"), np.uint8),
                    *(len(mapped[split]), len(class_names), path, f"{split}_X.bin"),
                    first=1,
                )
                for split in splits
            ]
            targets = np.concatenate(codes)
    names = [name for split in splits for name in numbered_in(split, len(mapped[split]))]
    extra = [mapped[split] for split in extra_splits]
    return ImageSet(
        images=_joined([mapped[split] for split in splits], size),
        names=tuple(names),
        targets=targets,
        class_names=class_names,
        extra=_joined(extra, size) if extra else None,
    )


def _mapped(place: Path, split: str) -> NDArray[np.uint8]:
    """N x H x W x C, a view of the file: its order is image, plane, column, row."""
    path = place / f"{split}_X.bin"
    n_bytes = path.stat().st_size
    if n_bytes == 0 or n_bytes % _IMAGE_BYTES:
        raise InputError(
            f"{path} has {n_bytes} bytes, not a whole number of images of {_IMAGE_BYTES}: it is "
            "damaged or cut short; get it again"
        )
    flat = np.memmap(require_regular(path), np.uint8, mode="r")
    return flat.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 3, 2, 1)


def _joined(parts: Sequence[NDArray[np.uint8]], size: int | None) -> NDArray[np.uint8]:
    squared = [square_images(part, size or _SIDE) for part in parts]
    return squared[0] if len(squared) == 1 else np.concatenate(squared)


def _class_names(place: Path) -> tuple[str, ...]:
    path = place / "class_names.txt"
    if not path.is_file():
        return STL10_CLASSES
    return check_class_names(text_lines(path), len(STL10_CLASSES), path)
