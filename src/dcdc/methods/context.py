"""What a method is given beside images, clusters and a seed, and what it answers.

Shapes: N images, D features, K clusters.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer, SilentObserver

_SILENT = SilentObserver()


@dataclass(frozen=True)
class Context:
    device: str = "cpu"
    observer: Observer = _SILENT
    folder: Path | None = None
    """Where a method may keep what it needs to go on after a kill."""


@dataclass(frozen=True)
class Clustering:
    assignments: NDArray[np.int64]
    """N, from 0 to K - 1."""
    probabilities: NDArray[np.float32] | None = None
    """N x K, where the method is soft."""
    features: NDArray[np.float32] | None = None
    """N x D, where the method has any beside the pixels."""
    network: nn.Module | None = None


def pixels_of(image_set: ImageSet) -> NDArray[np.float32]:
    """N x (H W C), from 0 to 1."""
    return image_set.images.reshape(image_set.n_images, -1).astype(np.float32) / np.float32(255)
