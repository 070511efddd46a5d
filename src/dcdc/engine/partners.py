"""The partners of a feature vector, which take the place of its perturbed copy.

Neighbours do, where the features have local structure, as those of networks have. Where clusters
are clouds of noise around a middle, a neighbour is near by chance, and any member of the same
K-Means cluster is the better partner. Which is so can be told without labels: neighbours are found
in one half of the features and looked at in the other.

Shapes: N images, D features, k partners of each, K clusters.
"""

import numpy as np
import torch
from torch import Tensor

from dcdc.data.vector_store import VectorStore
from dcdc.engine.cluster_head_initialisation import MOST_IMAGES
from dcdc.engine.context import TrainingContext
from dcdc.engine.k_means import k_means_centres, nearest_centre, some_rows
from dcdc.engine.neighbours import find_neighbours, nearest_neighbours
from dcdc.networks import CLUSTER_HEAD
from dcdc.runtime.seeding import derive_seed

MOST_LOOKED_AT = 2_000
_CHUNK = 16_384
_CPU = torch.device("cpu")


def find_partners(context: TrainingContext, k: int) -> Tensor:
    """N x k, the rows of each one's partners."""
    model, store = context.model, context.store
    if not isinstance(store, VectorStore):
        return find_neighbours(model, store, k)
    network = model.network
    n_clusters = network.heads[network.sub_heads(CLUSTER_HEAD)[0]].out_features
    assert isinstance(n_clusters, int)
    random = np.random.default_rng(derive_seed(context.seed, "partners"))
    some = some_rows(store.n_answered, MOST_LOOKED_AT, random)
    features = model.features_of(store, some)
    if store.has_copies or neighbours_are_nearer(features, n_clusters, k, random):
        return find_neighbours(model, store, k)
    context.observer.note(
        "neighbours are no nearer than other members of a K-Means cluster: these are the partners"
    )
    sample = some_rows(store.n_answered, MOST_IMAGES, random)
    centres = k_means_centres(model.features_of(store, sample), n_clusters, _drawn(random))
    assigned = [
        nearest_centre(model.features_of(store, rows), centres)
        for rows in np.array_split(np.arange(store.n_answered), -(-store.n_answered // _CHUNK))
    ]
    return cluster_mates(np.concatenate(assigned), k, random)


def neighbours_are_nearer(
    features: np.ndarray, n_clusters: int, k: int, random: np.random.Generator
) -> bool:
    """Whether the k neighbours by one half of the features are nearer, in the other half, than the
    members of the same K-Means cluster by that half."""
    n_images, n_features = features.shape
    k = min(k, n_images - 1)
    if n_features < 2 or n_images <= n_clusters:
        return True
    shuffled = random.permutation(n_features)
    chosen, held_out = (_unit(features[:, half]) for half in np.array_split(shuffled, 2))
    near = nearest_neighbours(chosen, k, _CPU).numpy()
    of_neighbours = np.mean([(held_out * held_out[near[:, i]]).sum(axis=1) for i in range(k)])
    centres = k_means_centres(chosen, n_clusters, _drawn(random), n_init=3)
    assigned = nearest_centre(chosen, centres)
    total, n_pairs = 0.0, 0
    for cluster in range(n_clusters):
        members = held_out[assigned == cluster]
        sums = members.sum(axis=0)
        total += float(sums @ sums) - float((members**2).sum())  # all pairs of two, both ways
        n_pairs += len(members) * (len(members) - 1)
    return bool(n_pairs == 0 or of_neighbours > total / n_pairs)


def cluster_mates(assigned: np.ndarray, k: int, random: np.random.Generator) -> Tensor:
    """N x k: for each row, others of its cluster, drawn with repetition; of a cluster of one,
    itself."""
    partners = np.empty((len(assigned), k), np.int64)
    for cluster in np.unique(assigned):
        members = np.flatnonzero(assigned == cluster)
        n = len(members)
        steps = random.integers(1, max(n, 2), (n, k))  # so many members further on, never itself
        partners[members] = members[(np.arange(n)[:, None] + steps) % n]
    return torch.from_numpy(partners)


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-8))


def _drawn(random: np.random.Generator) -> int:
    return int(random.integers(2**31))
