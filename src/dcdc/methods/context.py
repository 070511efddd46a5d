"""What a method is given beside images, clusters and a seed, and what it answers.

Shapes: N images, D features, K clusters.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

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
