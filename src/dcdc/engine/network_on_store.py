"""A network over the images of a store: assignments and features, in chunks, shared among
processes.

Shapes: N images, D features, K clusters.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dcdc.augment import OriginalCopy, PerturbedCopy, to_float
from dcdc.data.store import Store
from dcdc.data.vector_store import VectorStore
from dcdc.engine.assignment import (
    Assigned,
    assign_images,
    each_feature,
    extract_features,
    extract_map_means,
    look_at_images,
)
from dcdc.networks import ClusteringNetwork
from dcdc.networks.local_maps import ShowsMaps
from dcdc.runtime.processes import ALONE, Processes

CHUNK = 512
GPU_CHUNK = 4096
"""Images of 32 x 32 pixels per forward pass, or as many of another size with as many pixels."""
CPU_CHUNK_OF_PRETRAINED = 64


class NetworkOnStore:
    def __init__(
        self,
        network: ClusteringNetwork,
        original_copy: OriginalCopy | None,
        *,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
        processes: Processes = ALONE,
    ) -> None:
        """`original_copy`: None where the network is given feature vectors. Of several `processes`
        each answers for a share of the images, and all have the whole answer."""
        self.network = network
        self._original_copy = original_copy
        self.device = device
        self.autocast = autocast
        self.processes = processes

    @property
    def takes_vectors(self) -> bool:
        """Whether it is given feature vectors, not images."""
        return self._original_copy is None

    @property
    def original_copy(self) -> OriginalCopy:
        assert self._original_copy is not None, "of a model that takes images"
        return self._original_copy

    @property
    def size(self) -> int:
        return self.original_copy.size

    @property
    def n_clusters(self) -> int:
        head = self.network.heads[self.network.answering_head]
        assert isinstance(head, nn.Linear)
        return head.out_features

    @property
    def chunk(self) -> int:
        """Images of a forward pass."""
        on_gpu, given = self.device.type == "cuda", self.network.input_size
        if self.takes_vectors or (given is None and not on_gpu):
            return GPU_CHUNK if on_gpu else CHUNK
        if not on_gpu:  # a deep backbone's maps of more images would fill gigabytes
            return CPU_CHUNK_OF_PRETRAINED
        return max(64, GPU_CHUNK * 32**2 // max(self.size, given or 0) ** 2)

    def prepare(self, rows: torch.Tensor) -> torch.Tensor:
        """What the network is given of a store's rows: feature vectors as they are, of images the
        original copy, centred."""
        return rows if rows.ndim == 2 else self.original_copy.centre(to_float(rows))

    def assign_store(self, store: Store) -> Assigned:
        def assign(rows: slice) -> np.ndarray:
            chunks = store.in_chunks(self.chunk, rows)
            return assign_images(self.network, chunks, self.prepare, self.autocast).probabilities

        (probabilities,) = self._shared(store.n_answered, lambda rows: (assign(rows),))
        return Assigned(probabilities)

    def features_of(self, store: Store, rows: np.ndarray) -> np.ndarray:
        """The features of some of a store's images."""

        def extract(part: slice) -> tuple[np.ndarray]:
            chunks = self._chunks_of(store, rows[part])
            return (extract_features(self.network, chunks, self.prepare, self.autocast),)

        (features,) = self._shared(len(rows), extract)
        return features

    def given_vectors_of(self, store: Store, rows: np.ndarray) -> np.ndarray | None:
        """n x D: some of a store's feature vectors as they are, of which the network takes the
        directions; None of images."""
        if not isinstance(store, VectorStore):
            return None
        chunks = self._chunks_of(store, rows)
        return np.concatenate([chunk.float().cpu().numpy() for chunk in chunks])

    def map_means_of(self, store: Store, rows: np.ndarray) -> np.ndarray | None:
        """n x C: the means of the backbone's maps for some of a store's images; None where it shows
        no maps, as the many do whose features are these means, or the store has no images."""
        backbone = self.network.backbone
        if isinstance(store, VectorStore) or not isinstance(backbone, ShowsMaps):
            return None

        def extract(part: slice) -> tuple[np.ndarray]:
            chunks = self._chunks_of(store, rows[part])
            network, prepare = self.network, self.prepare
            return (extract_map_means(network, backbone, chunks, prepare, self.autocast),)

        (means,) = self._shared(len(rows), extract)
        return means

    def look_at(self, store: Store, rows: np.ndarray) -> tuple[np.ndarray, Assigned]:
        """Features and assignments of some of a store's images."""

        def look(part: slice) -> tuple[np.ndarray, np.ndarray]:
            chunks = self._chunks_of(store, rows[part])
            features, assigned = look_at_images(self.network, chunks, self.prepare, self.autocast)
            return features, assigned.probabilities

        features, probabilities = self._shared(len(rows), look)
        return features, Assigned(probabilities)

    def _shared(
        self, n_rows: int, answer: Callable[[slice], tuple[np.ndarray, ...]]
    ) -> tuple[np.ndarray, ...]:
        """Answers for all rows in order, whoever computed them."""
        own = self.processes.share(n_rows)
        n_own = own.stop - own.start
        # Of no rows the width would not be known: one is asked for, and dropped.
        found = answer(own if n_own or not n_rows else slice(0, 1))
        return tuple(self.processes.all_gather_arrays(part[:n_own], n_rows) for part in found)

    def look_at_rows(self, rows: NDArray[Any]) -> tuple[np.ndarray, Assigned]:
        """Features and assignments of a few images, N x S x S x C at the model's size, or of a few
        feature vectors."""
        given = torch.tensor(rows, device=self.device)
        given = given.float() if given.ndim == 2 else given.permute(0, 3, 1, 2)
        chunks = torch.split(given, self.chunk)
        return look_at_images(self.network, chunks, self.prepare, self.autocast)

    def assign_perturbed(
        self,
        store: Store,
        rows: np.ndarray,
        perturbed_copy: PerturbedCopy,
        generator: torch.Generator,
    ) -> Assigned:
        """Of one perturbed copy of some of a store's images."""
        assert perturbed_copy.n_repeats == 1, perturbed_copy.n_repeats

        def prepare(images: torch.Tensor) -> torch.Tensor:
            return perturbed_copy(to_float(images), generator=generator)

        chunks = self._chunks_of(store, rows)
        return assign_images(self.network, chunks, prepare, self.autocast)

    def perturbed_features(
        self,
        store: Store,
        rows: np.ndarray,
        perturbed_copy: PerturbedCopy,
        generator: torch.Generator,
    ) -> Iterator[torch.Tensor]:
        """r x images x D, chunk by chunk: the features of r perturbed copies of some of a store's
        images, by this process alone."""
        n_copies = perturbed_copy.n_repeats

        def prepare(images: torch.Tensor) -> torch.Tensor:
            return perturbed_copy(to_float(images), generator=generator)

        chunk = max(1, self.chunk // n_copies)
        chunks = self._chunks_of(store, rows, chunk)
        for features in each_feature(self.network, chunks, prepare, self.autocast):
            yield features.float().view(n_copies, -1, features.shape[1])

    def _chunks_of(
        self, store: Store, rows: np.ndarray, chunk: int | None = None
    ) -> Iterator[torch.Tensor]:
        chunks = torch.split(torch.from_numpy(rows), chunk or self.chunk)
        return (store.batch(indices) for indices in chunks)
