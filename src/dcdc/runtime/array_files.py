"""Named arrays in one `.npz` file; dcdc.stored.arrays reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcdc.runtime.atomic_files import atomic_file


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The same arrays give the same bytes."""
    content: dict[str, Any] = dict(arrays)
    with atomic_file(path) as temporary:
        np.savez_compressed(temporary, **content)
