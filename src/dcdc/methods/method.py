"""What every method of the table is: images, a number of clusters and a seed in, clusters out.

Shapes: N images, D features, K clusters.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer, SilentObserver
from dcdc.errors import InputError

SILENT = SilentObserver()


@dataclass(frozen=True)
class Clustering:
    assignments: NDArray[np.int64]
    """N, from 0 to K - 1."""
    probabilities: NDArray[np.float32] | None = None
    """N x K, where the method is soft."""
    features: NDArray[np.float32] | None = None
    """N x D, where the method has any beside the pixels."""
    network: nn.Module | None = None


class Method(Protocol):
    """A method's own settings are further keyword arguments, each with a default."""

    def __call__(
        self,
        image_set: ImageSet,
        n_clusters: int,
        seed: int,
        *,
        device: str = "cpu",
        observer: Observer = SILENT,
        folder: Path | None = None,
    ) -> Clustering:
        """Never looks at `image_set.targets`; `folder` may keep what it needs to go on."""


def check_task(image_set: ImageSet, n_clusters: int) -> None:
    """What no method can bear: too few images, one cluster, nothing to tell apart."""
    n_images = image_set.n_images
    if not 2 <= n_clusters <= n_images:
        raise InputError(
            f"{n_clusters} clusters for {n_images} images: give --clusters from 2 to {n_images}"
        )
    first = image_set.images[:1]
    if all((image_set.images[i : i + 4096] == first).all() for i in range(0, n_images, 4096)):
        raise InputError(f"all {n_images} images are the same: there is nothing to tell apart")


def pixels_of(image_set: ImageSet) -> NDArray[np.float32]:
    """N x (H W C), from 0 to 1."""
    return image_set.images.reshape(image_set.n_images, -1).astype(np.float32) / np.float32(255)
