"""The answer: assignments (and features) of every image, in order.

Shapes: N images, D features, K clusters of the cluster head.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dcdc.augment import to_float
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork


class Assigned(NamedTuple):
    probabilities: np.ndarray
    """N x K float32, rows sum to 1."""
    features: np.ndarray
    """N x D float32."""

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
    parts = list(_assign_chunks(network, chunks, prepare, autocast))
    probabilities, features = (
        torch.cat(part).float().cpu().numpy() for part in zip(*parts, strict=True)
    )
    return Assigned(probabilities, features)


def _assign_chunks(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]],
) -> Iterator[tuple[Tensor, Tensor]]:
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            for chunk in chunks:
                with autocast():
                    output = network(prepare(to_float(chunk)))
                yield output.assign[CLUSTER_HEAD], output.features
    finally:
        network.train(was_training)
