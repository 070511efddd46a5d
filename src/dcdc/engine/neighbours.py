"""Each image's nearest neighbours by its features: what else may show the same thing.

Shapes: N images, D features, k neighbours.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.data.store import Store
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.heads import EMPTY

_CHUNK = 2048
_COLUMNS = 2**17
"""Images that a chunk is compared with at a time: a tile of affinities takes a gigabyte."""
_GROUP = 32
"""Columns of which only the largest number is looked at first, on a GPU."""
_SPARE = 16
"""Candidates more than neighbours, by products of tensor cores, which round their factors to ten
digits: a neighbour would have to be 16 places away from its own to be missed."""
_FEATURES_AT_ONCE = 16 * _CHUNK
_AXES = 64
Largest = Callable[[Tensor, int], tuple[Tensor, Tensor]]
"""The k largest of each row, the largest first, and their columns."""
MOST_CANDIDATES = {"cpu": 25_000, "cuda": 1_500_000, "mps": 25_000}
"""Images among which the neighbours of more images are looked for: all of them up to so many."""


def find_neighbours(
    model: TrainedModel, store: Store, k: int, features: np.ndarray | None = None
) -> Tensor:
    """N x k, of all images of the store by the features that they have now, which may be given; of
    several processes the first looks for them."""
    if len(store) > MOST_CANDIDATES[model.device.type]:
        return _among_candidates(model, store, k)
    if features is None or len(features) < len(store):
        features = model.features_of(store, np.arange(len(store)))
    processes = model.processes
    found = torch.empty((len(features), k), dtype=torch.int64)

    def by_first() -> None:
        if processes.is_first:
            found.copy_(nearest_neighbours(features, k, model.device, store.n_answered))

    processes.with_barrier(by_first)
    processes.broadcast([found])
    return found


def _among_candidates(model: TrainedModel, store: Store, k: int) -> Tensor:
    """Of each image, the nearest among an even sample of the answered ones: the features of all
    would not fit in memory, nor all pairs in the time there is."""
    n_candidates = MOST_CANDIDATES[model.device.type]
    chosen = np.unique(np.linspace(0, store.n_answered - 1, n_candidates).astype(np.int64))
    candidates = _directions(model.features_of(store, chosen), model.device)
    axes = _principal_axes(candidates)
    candidates = F.normalize(candidates @ axes, dim=1, eps=EMPTY)
    rows = torch.from_numpy(chosen)
    found = []
    for start in range(0, len(store), _FEATURES_AT_ONCE):
        some = np.arange(start, min(start + _FEATURES_AT_ONCE, len(store)))
        features = _directions(model.features_of(store, some), model.device)
        numbered = torch.split(torch.from_numpy(some), _CHUNK)
        for chunk, numbers in zip(torch.split(features, _CHUNK), numbered, strict=True):
            affinity = F.normalize(chunk @ axes, dim=1, eps=EMPTY) @ candidates.T
            near = rows[affinity.topk(k + 1, dim=1).indices.cpu()]
            found.append(_without_itself(near, numbers))
    return torch.cat(found)


def _principal_axes(rows: Tensor) -> Tensor:
    """D x at most 64: where the rows differ most, which is enough to tell who is near."""
    centred = (rows - rows.mean(dim=0)).double()
    # ascending: the last ones hold the most variance
    axes: Tensor = torch.linalg.eigh(centred.T @ centred)[1][:, -_AXES:]
    return axes.to(rows.dtype)


def _without_itself(near: Tensor, rows: Tensor) -> Tensor:
    """n x k of n x (k + 1): the image itself goes, or else the farthest."""
    is_itself = near == rows[:, None]
    is_itself[:, -1] |= ~is_itself.any(dim=1)
    return near[~is_itself].view(len(near), -1)


def _directions(features: np.ndarray, device: torch.device) -> Tensor:
    return F.normalize(torch.from_numpy(features).to(device), dim=1, eps=EMPTY)


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
    rows = _directions(features, device)
    chunks = range(0, len(rows), _CHUNK)
    return torch.cat([_nearest_of_chunk(rows, start, k, n_answered).cpu() for start in chunks])


def _nearest_of_chunk(rows: Tensor, start: int, k: int, n_answered: int) -> Tensor:
    """n x k, of the n images from number `start` on; of each tile of others the k nearest, and the
    nearest of those."""
    if rows.device.type == "cuda":
        with _tensor_cores():
            some = _best_of_chunk(rows, start, k + _SPARE, n_answered, _largest)
        return _nearest_of_candidates(rows, start, k, *some)
    return _best_of_chunk(rows, start, k, n_answered, torch.topk)[1]


def _best_of_chunk(
    rows: Tensor, start: int, k: int, n_answered: int, largest: Largest
) -> tuple[Tensor, Tensor]:
    """n x at most k affinities, the largest first, and whose they are."""
    chunk = rows[start : start + _CHUNK]
    near: list[Tensor] = []
    numbers: list[Tensor] = []
    for first in range(0, len(rows), _COLUMNS):
        affinity = chunk @ rows[first : first + _COLUMNS].T
        affinity.diagonal(start - first).fill_(-torch.inf)  # no image is its own neighbour
        affinity[: max(0, n_answered - start), max(0, n_answered - first) :] = -torch.inf
        values, places = largest(affinity, min(k, affinity.shape[1]))
        near.append(values)
        numbers.append(places + first)
    if len(near) == 1:
        return near[0], numbers[0]
    all_near = torch.cat(near, dim=1)
    values, place = all_near.topk(min(k, all_near.shape[1]), dim=1)
    return values, torch.cat(numbers, dim=1).gather(1, place)


def _largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `topk`, of n x m: the k groups of columns with the largest numbers hold the k largest. All
    others are read once, where a sort reads them again and again."""
    n_groups = values.shape[1] // _GROUP
    if n_groups <= k:
        return values.topk(k, dim=1)
    grouped = values[:, : n_groups * _GROUP].view(len(values), n_groups, _GROUP)
    groups = grouped.amax(2).topk(k, dim=1).indices
    members = torch.arange(_GROUP, device=values.device)
    rest = torch.arange(n_groups * _GROUP, values.shape[1], device=values.device)
    places = (groups[..., None] * _GROUP + members).flatten(1)
    places = torch.cat([places, rest.expand(len(values), -1)], dim=1)
    found = values.gather(1, places).topk(k, dim=1)
    return found.values, places.gather(1, found.indices)


def _nearest_of_candidates(
    rows: Tensor, start: int, k: int, roughly: Tensor, candidates: Tensor
) -> Tensor:
    """n x k of n x m: by affinities in full precision; -inf among the rough ones stays."""
    chunk = rows[start : start + _CHUNK]
    affinity = torch.einsum("nd,nmd->nm", chunk, rows[candidates])
    affinity.masked_fill_(roughly == -torch.inf, -torch.inf)
    return candidates.gather(1, affinity.topk(k, dim=1).indices)


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products of float32 by the matrix units of a GPU, six times as fast."""
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    products.fp32_precision = "tf32"
    try:
        yield
    finally:
        products.fp32_precision = before


def choose_partners(batches: Tensor, neighbours: Tensor, generator: torch.Generator) -> Tensor:
    """steps x B: one neighbour of each image of the batches."""
    k = neighbours.shape[1]
    chosen = torch.randint(k, batches.shape, generator=generator)
    return neighbours[batches, chosen]
