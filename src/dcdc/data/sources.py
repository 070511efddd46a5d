"""One argument, any source: a built-in name, a NumPy file or a folder becomes an ImageSet."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from dcdc.data.arrays import load_array_file
from dcdc.data.digits import load_digits
from dcdc.data.folder import Progress, check_on_bad, load_folder
from dcdc.data.image_set import ImageSet, check_side
from dcdc.errors import InputError

BUILT_IN: dict[str, Callable[[int | None], ImageSet]] = {"digits": load_digits}  # size -> set


def load_images(
    source: str | Path,
    *,
    size: int | None = None,
    on_bad: str = "refuse",
    progress: Progress | None = None,
) -> ImageSet:
    """Load a built-in set (`digits`), a `.npy` or `.npz` file, or a folder of images.

    Images come out square: their centre is kept, and `size` resizes them. A built-in name wins
    over a file or folder of that name; `./digits`, or a Path that exists, means the latter.
    """
    check_side(size)
    check_on_bad(on_bad)
    text, path = str(source), Path(source)
    try:
        if text in BUILT_IN and not (isinstance(source, Path) and path.exists()):
            return BUILT_IN[text](size)
        if text and path.is_dir():
            return load_folder(path, size=size, on_bad=on_bad, progress=progress)
        if path.is_file() and path.suffix.lower() in (".npy", ".npz"):
            return load_array_file(path, size)
        is_other_file = path.is_file()
    except OSError as error:
        raise InputError(
            f"cannot read {text!r}: {error.strerror}; check the path and its permissions"
        ) from None
    fault = "is no folder and no .npy or .npz file" if is_other_file else "does not exist"
    near = difflib.get_close_matches(text.lower().strip(f"./{os.sep}"), BUILT_IN, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"data source {text!r} {fault}: give a built-in name ({', '.join(BUILT_IN)}), a folder of "
        f"images, or a .npy or .npz file{hint}"
    )
