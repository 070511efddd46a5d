"""The reading of class labels, of any integer or string type, that several packages share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.errors import InputError


def label_array(values: ArrayLike, where: str) -> NDArray[Any]:
    """One label per image as a flat array of integers or strings; anything else is refused."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
    except ValueError as error:
        raise InputError(
            f"{where} cannot be read as labels ({error}): give one per image"
        ) from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{where} has shape {array.shape}: give one label per image, a flat array")
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind in "UTO":
        # a list is looked at itself: numpy turns ["cat", nan] into two strings
        items = array.tolist() if hasattr(values, "dtype") else list(values)  # type: ignore[arg-type]
        for kind in (str, (int, np.integer)):
            if all(isinstance(item, kind) for item in items):
                _require_text(items, where)
                return np.array(items)
        found = "mixed or missing values"
    elif array.dtype.kind == "f" and np.isnan(array).any():
        found = f"NaN at position {np.flatnonzero(np.isnan(array))[0]}"
    else:
        found = f"type {array.dtype}"
    raise InputError(f"{where} has {found}: labels must be all integers or all strings")


def _require_text(items: list[Any], where: str) -> None:
    """Half a character can be held in memory and written nowhere."""
    for at, item in enumerate(items):
        try:
            str(item).encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{where} has {item!a:.60} at position {at}, which is no text: labels must be text "
                "that can be written"
            ) from None


def are_folders(targets: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the classes of images are the folders they lie in, which may mean something else:
    years, or phones."""
    return all(
        "/" in name and name.partition("/")[0] == target
        for name, target in zip(names, targets, strict=True)
    )


def encode_targets(
    targets: ArrayLike, where: str = "targets"
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes 0..C-1 and the class names they stand for, sorted (integers by value)."""
    classes, codes = np.unique(label_array(targets, where), return_inverse=True)
    return codes.astype(np.int64), tuple(str(name) for name in classes.tolist())
