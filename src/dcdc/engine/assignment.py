"""The answer for every image, in order: assignments, or features.

Shapes: N images, D features, K clusters of the cluster head.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dcdc.augment import to_float
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, NetworkOutput


class Assigned(NamedTuple):
    probabilities: np.ndarray
    """N x K float32, rows sum to 1."""

    @property
    def assignments(self) -> np.ndarray:
        """N int64: the arg-max of each row."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def confidence(self) -> np.ndarray:
        return np.asarray(self.probabilities.max(axis=1))


def assign_images(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Assigned:
    """Chunks of uint8 images on the network's device, brought to size by `prepare`."""
    outputs = _outputs(network, chunks, prepare, autocast)
    return Assigned(_as_array(output.assign[CLUSTER_HEAD] for output in outputs))


def extract_features(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> np.ndarray:
    """N x D float32: what the heads see."""
    return _as_array(output.features for output in _outputs(network, chunks, prepare, autocast))


def _as_array(parts: Iterable[Tensor]) -> np.ndarray:
    return torch.cat(list(parts)).float().cpu().numpy()


def _outputs(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]],
) -> Iterator[NetworkOutput]:
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            for chunk in chunks:
                with autocast():
                    output = network(prepare(to_float(chunk)))
                yield output
    finally:
        network.train(was_training)
