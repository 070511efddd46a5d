"""Each image's nearest neighbours by its features: what else may stand for the same thing.

Shapes: N images, D features, k neighbours.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.data.store import Store
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.heads import EMPTY

_CHUNK = 2048


def find_neighbours(model: TrainedModel, store: Store, k: int) -> Tensor:
    """N x k, of all images of the store by the features that they have now; of several processes
    the first looks for them."""
    features = model.features_of(store, np.arange(len(store)))
    processes = model.processes
    found = torch.empty((len(features), k), dtype=torch.int64)

    def by_first() -> None:
        if processes.is_first:
            found.copy_(nearest_neighbours(features, k, model.device, store.n_answered))

    processes.with_barrier(by_first)
    processes.broadcast([found])
    return found


@torch.no_grad()
def nearest_neighbours(
    features: np.ndarray, k: int, device: torch.device, n_answered: int | None = None
) -> Tensor:
    """N x k int64 on the CPU, by cosine of the rows of `features` (N x D), nearest first.

    The first `n_answered` images have theirs among themselves: the cluster head sees no others.
    """
    n_answered = len(features) if n_answered is None else n_answered
    if not 1 <= k < n_answered:
        raise ValueError(f"{n_answered} images do not have {k} neighbours each")
    rows = F.normalize(torch.from_numpy(features).to(device), dim=1, eps=EMPTY)
    found = []
    for start in range(0, len(rows), _CHUNK):
        affinity = rows[start : start + _CHUNK] @ rows.T
        affinity.diagonal(start).fill_(-torch.inf)  # nobody is their own neighbour
        affinity[: max(0, n_answered - start), n_answered:] = -torch.inf
        found.append(affinity.topk(k, dim=1).indices.cpu())
    return torch.cat(found)


def with_partners(batches: Tensor, neighbours: Tensor, generator: torch.Generator) -> Tensor:
    """steps x 2B from steps x B: after each batch, one neighbour of each of its images."""
    k = neighbours.shape[1]
    chosen = torch.randint(k, batches.shape, generator=generator)
    return torch.cat([batches, neighbours[batches, chosen]], dim=1)
