"""A trained network that answers for new images.

Shapes: N images, D features, K clusters.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike

from dcdc.augment import OriginalCopy, PerturbedCopy
from dcdc.data import ImageSet, from_arrays
from dcdc.data.store import Store, open_store
from dcdc.engine.assignment import Assigned, assign_images, extract_features, look_at_images
from dcdc.errors import InputError
from dcdc.networks import ClusteringNetwork

CHUNK = 512
GPU_CHUNK = 4096
"""Images of 32 x 32 pixels per forward pass, or as many of another size with as many pixels."""


class TrainedModel:
    """Takes images as training did: arrays of any usual layout are brought to its size."""

    def __init__(
        self,
        network: ClusteringNetwork,
        original_copy: OriginalCopy,
        *,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.network = network
        self.original_copy = original_copy
        self.device = device
        self.autocast = autocast

    @property
    def size(self) -> int:
        return self.original_copy.size

    @property
    def _chunk(self) -> int:
        if self.device.type != "cuda":
            return CHUNK
        return max(64, GPU_CHUNK * 32**2 // self.size**2)

    def predict(self, images: ArrayLike) -> np.ndarray:
        """N int64: the cluster of each image."""
        return self.assign(self.image_set(images)).assignments

    def predict_proba(self, images: ArrayLike) -> np.ndarray:
        """N x K: the share of each cluster in each image."""
        return self.assign(self.image_set(images)).probabilities

    def transform(self, images: ArrayLike) -> np.ndarray:
        """N x D: the features that the heads see."""
        image_set = self._checked(self.image_set(images))
        store = open_store(image_set.images, self.device)
        return self.features_of(store, np.arange(len(store)))

    def image_set(self, images: ArrayLike) -> ImageSet:
        return from_arrays(images, size=self.size)

    def assign(self, image_set: ImageSet) -> Assigned:
        return self.assign_store(open_store(self._checked(image_set).images, self.device))

    def assign_store(self, store: Store) -> Assigned:
        return assign_images(
            self.network, store.in_chunks(self._chunk), self.original_copy.centre, self.autocast
        )

    def features_of(self, store: Store, rows: np.ndarray) -> np.ndarray:
        """The features of some of a store's images."""
        chunks = self._chunks_of(store, rows)
        return extract_features(self.network, chunks, self.original_copy.centre, self.autocast)

    def look_at(self, store: Store, rows: np.ndarray) -> tuple[np.ndarray, Assigned]:
        """Features and assignments of some of a store's images."""
        chunks = self._chunks_of(store, rows)
        return look_at_images(self.network, chunks, self.original_copy.centre, self.autocast)

    def assign_perturbed(
        self,
        store: Store,
        rows: np.ndarray,
        perturbed_copy: PerturbedCopy,
        generator: torch.Generator,
    ) -> Assigned:
        """Of one perturbed copy of some of a store's images."""
        assert perturbed_copy.n_repeats == 1, perturbed_copy.n_repeats
        prepare = partial(perturbed_copy, generator=generator)
        chunks = self._chunks_of(store, rows)
        return assign_images(self.network, chunks, prepare, self.autocast)

    def _chunks_of(self, store: Store, rows: np.ndarray) -> Iterator[torch.Tensor]:
        return (store.batch(chunk) for chunk in torch.split(torch.from_numpy(rows), self._chunk))

    def _checked(self, image_set: ImageSet) -> ImageSet:
        wanted = self.network.in_channels
        if image_set.channels != wanted:
            raise InputError(
                f"the model was trained on images of {wanted} channel(s), "
                f"these have {image_set.channels}: convert them first"
            )
        return image_set
