"""Heads over stored features: what TEMI and TURTLE share.

Shapes: N images, D features, B of a batch, k neighbours, K clusters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.data import VectorSet
from dcdc.engine.neighbours import MOST_CANDIDATES, nearest_neighbours
from dcdc.engine.observer import Observer
from dcdc.engine.simple_training import SimplePhase, SimpleStep, epochs_for, train_simple
from dcdc.methods.context import Context
from dcdc.methods.points import principal_components
from dcdc.metrics.directions import directions
from dcdc.runtime.device import pick_device
from dcdc.runtime.seeding import derive_generator

_ROWS = 1024


@dataclass(frozen=True)
class VectorTraining:
    """Feature vectors on their device, a seed and an observer."""

    spaces: tuple[Tensor, ...]
    """N x D each: the principal components of the vectors' directions, of length sqrt(D), so that
    numbers are of about 1. The second, where there is one, is of other copies of the same
    images."""
    device: torch.device
    seed: int
    observer: Observer
    batch_size: int

    @classmethod
    def open(
        cls,
        vector_set: VectorSet,
        seed: int,
        context: Context,
        batch_size: int,
        n_components: int,
    ) -> "VectorTraining":
        """A batch of more images than there are is all of them, and so are components."""
        device = pick_device(context.device)
        given = [vector_set.vectors]
        if vector_set.copies is not None:
            given.append(vector_set.copies)
        spaces = tuple(_scaled(vectors, n_components, seed).to(device) for vectors in given)
        batch_size = max(1, min(batch_size, vector_set.n_images))
        return cls(spaces, device, seed, context.observer, batch_size)

    @property
    def vectors(self) -> Tensor:
        return self.spaces[0]

    def neighbours(self, k: int) -> Tensor:
        """N x k, by cosine; where there are many images, among an even sample of them."""
        n_images, most = len(self.vectors), MOST_CANDIDATES[self.device.type]
        k = min(k, min(n_images, most) - 1)
        if n_images <= most:
            return nearest_neighbours(self.vectors.cpu().numpy(), k, self.device).to(self.device)
        chosen = torch.linspace(0, n_images - 1, most, dtype=torch.float64).long().to(self.device)
        candidates, found = self.vectors[chosen], []
        for rows in torch.split(torch.arange(n_images, device=self.device), _ROWS):
            affinity = self.vectors[rows] @ candidates.T
            affinity[rows[:, None] == chosen] = -torch.inf
            found.append(chosen[affinity.topk(k, dim=1).indices])
        return torch.cat(found)

    def draw(self, name: str, *shape: int, scale: float) -> torch.nn.Parameter:
        """Weights from -scale to scale, by the seed alone."""
        drawn = torch.rand(shape, generator=derive_generator(self.seed, name))
        return torch.nn.Parameter((scale * (2 * drawn - 1)).to(self.device))

    def train(self, step: SimpleStep, n_steps: int) -> None:
        """For about as many steps; a batch has the first space's vectors."""
        n_images = len(self.vectors)
        train_simple(
            [SimplePhase(step, epochs_for(n_steps, n_images, self.batch_size))],
            n_images,
            lambda batches: (self.vectors[indices] for indices in batches.to(self.device)),
            batch_size=self.batch_size,
            seed=self.seed,
            device=self.device,
            observer=self.observer,
        )


def _scaled(vectors: NDArray[Any], n_components: int, seed: int) -> Tensor:
    """What few components hold is most of what vectors say, at a fraction of the time."""
    points = principal_components(directions(vectors.astype(np.float32)), n_components, seed)
    return torch.from_numpy(directions(points) * np.float32(points.shape[1] ** 0.5))
