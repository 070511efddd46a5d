"""The truth, where there is one: class labels of any integer or string type become codes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcdc.labels import label_array


def encode_targets(
    targets: ArrayLike, where: str = "targets"
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes 0..C-1 and the class names they stand for, sorted (integers by value)."""
    classes, codes = np.unique(label_array(targets, where), return_inverse=True)
    return codes.astype(np.int64), tuple(str(name) for name in classes.tolist())
