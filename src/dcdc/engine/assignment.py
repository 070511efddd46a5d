"""The answer for every image, in order: assignments, or features.

Shapes: N images, D features, C maps, K clusters of the cluster head.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from dcdc.metrics.health import OUTLIER
from dcdc.networks import ClusteringNetwork, NetworkOutput
from dcdc.networks.local_maps import ShowsMaps

UNSAID = -2
"""The cluster of images that nobody spoke of."""

_Answer = TypeVar("_Answer")
_PARTS_JOINED = 32
_ROWS_AT_ONCE = 2**16  # so that no second copy of all rows is made


class Assigned(NamedTuple):
    probabilities: np.ndarray
    """N x K float32, rows sum to 1."""
    outside: np.ndarray | None = None
    """N bool: images that belong to no cluster, where such are looked for."""
    said: np.ndarray | None = None
    """N: the clusters that people settled, OUTLIER or UNSAID (dcdc.engine.settled)."""

    @property
    def assignments(self) -> np.ndarray:
        """N int64: the arg-max of each row, or OUTLIER; but where people settled it, that."""
        found = np.asarray(self.probabilities.argmax(axis=1))
        if self.outside is not None:
            found = np.where(self.outside, OUTLIER, found)
        return found if self.said is None else np.where(self.said == UNSAID, found, self.said)

    @property
    def n_outliers(self) -> int:
        """That were found, whatever people said of them."""
        return 0 if self.outside is None else int(self.outside.sum())

    @property
    def confidence(self) -> np.ndarray:
        """N float32: the share of each image's cluster; of an image of none, the highest."""
        if self.said is None:
            return np.asarray(self.probabilities.max(axis=1))
        return np.take_along_axis(self.probabilities, self._first()[:, None], axis=1)[:, 0]

    def _first(self) -> np.ndarray:
        """N: each image's cluster; of an image of none, the arg-max."""
        found = self.assignments
        return np.where(found == OUTLIER, self.probabilities.argmax(axis=1), found)

    def runner_up(self) -> tuple[np.ndarray, np.ndarray]:
        """N int64 and N float32: the best cluster beside each image's own, and its share. Needs
        K > 1."""
        second, shares = [], []
        first = self._first()[:, None]
        for start in range(0, len(self.probabilities), _ROWS_AT_ONCE):
            rows = self.probabilities[start : start + _ROWS_AT_ONCE].copy()
            np.put_along_axis(rows, first[start : start + _ROWS_AT_ONCE], -1, axis=1)
            second.append(rows.argmax(axis=1))
            shares.append(rows.max(axis=1))
        return np.concatenate(second), np.concatenate(shares)


def assign_images(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Assigned:
    """Chunks of a store, on the network's device; `prepare` makes them what the network takes."""
    outputs = _outputs(network, chunks, prepare, autocast)
    return Assigned(_as_array(_answer(output) for output in outputs))


def extract_features(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> np.ndarray:
    """N x D float32: what the heads see."""
    return _as_array(each_feature(network, chunks, prepare, autocast))


def each_feature(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Tensor]:
    """The same, chunk by chunk as they come, on the network's device."""
    return (output.features for output in _outputs(network, chunks, prepare, autocast))


def look_at_images(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> tuple[np.ndarray, Assigned]:
    """Features and assignments of the same images, in one pass."""
    features, assign = [], []
    for output in _outputs(network, chunks, prepare, autocast):
        features.append(output.features)
        assign.append(_answer(output))
    return _as_array(features), Assigned(_as_array(assign))


def extract_map_means(
    network: ClusteringNetwork,
    backbone: ShowsMaps,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> np.ndarray:
    """N x C float32: of each of the backbone's C maps, the mean of its places."""

    def means(images: Tensor) -> Tensor:
        return backbone.maps(network.preprocess(images)).mean(dim=(2, 3))

    answers = _answers(means, network, chunks, prepare, autocast)
    return _as_array(answer[:n_images] for answer, n_images in answers)


def _answer(output: NetworkOutput) -> Tensor:
    (assign,) = output.assign.values()
    return assign


def _as_array(parts: Iterable[Tensor]) -> np.ndarray:
    """Joined a few at a time: thousands of small parts among the large tensors of forward passes
    would keep the memory of these from being used again."""
    waiting: list[Tensor] = []
    blocks: list[Tensor] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) == _PARTS_JOINED:
            blocks.append(torch.cat(waiting).float().cpu())
            waiting.clear()
    if waiting or not blocks:
        blocks.append(torch.cat(waiting).float().cpu())
    if len(blocks) == 1:
        return np.asarray(blocks[0].numpy())
    found = np.empty((sum(map(len, blocks)), *blocks[0].shape[1:]), np.float32)
    end = len(found)
    while blocks:  # each goes once it is copied: of a million images all take gigabytes
        block = blocks.pop().numpy()
        found[end - len(block) : end] = block
        end -= len(block)
    return found


def _outputs(
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]],
) -> Iterator[NetworkOutput]:
    heads = (network.answering_head,)
    answers = _answers(partial(network, heads=heads), network, chunks, prepare, autocast)
    return (output.first(n_images) for output, n_images in answers)


def _answers(
    ask: Callable[[Tensor], _Answer],
    network: ClusteringNetwork,
    chunks: Iterable[Tensor],
    prepare: Callable[[Tensor], Tensor],
    autocast: Callable[[], AbstractContextManager[object]],
) -> Iterator[tuple[_Answer, int]]:
    """What is answered of each chunk, and for how many images: there may be one more answer."""
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            for chunk in chunks:
                images = prepare(chunk)  # in full precision, as in training
                # One alone is shown twice: for a single image convolutions add up in another order.
                shown = images if len(images) > 1 else torch.cat([images, images])
                with autocast():
                    answer = ask(shown)
                yield answer, len(images)
    finally:
        network.train(was_training)
