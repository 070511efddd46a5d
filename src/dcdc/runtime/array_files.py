"""Named arrays in one `.npz` file; dcdc.stored.arrays reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcdc.runtime.atomic_files import atomic_file


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, packed: bool = True) -> None:
    """The same arrays give the same bytes. Packed ones are smaller; large ones are read sooner when
    they are not."""
    content: dict[str, Any] = dict(arrays)
    with atomic_file(path) as temporary:
        (np.savez_compressed if packed else np.savez)(temporary, **content)
