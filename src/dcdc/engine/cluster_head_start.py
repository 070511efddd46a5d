"""The cluster head's initialisation by K-Means, where training found its features first.

Heads that start at random beside an untrained backbone settle early into a poor partition and stay
there (docs/log.md has the figures); K-Means on features that the over-clustering head has already
shaped gives them a good one to improve.

Shapes: N images, D features, K clusters.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from dcdc.data.store import Store
from dcdc.engine.trained_model import TrainedModel
from dcdc.networks import CLUSTER_HEAD
from dcdc.runtime.device import library_threads
from dcdc.runtime.seeding import derive_seed

MOST_IMAGES = 20_000
SHARPNESS = 3.0
"""Standard deviation of the first logits: sure enough to teach, soft enough to be corrected."""


MOST_DIRECTIONS = 64
"""Of unit features, in which their K-Means looks: the same centres in a tenth of the time."""


def initialise_by_k_means(model: TrainedModel, store: Store, seed: int, *, spherical: bool) -> None:
    """Every cluster head of the model, from the features that the images have now; of several
    processes the first looks for the centres."""
    features_of = partial(model.features_of, store)
    for number, name in enumerate(model.network.sub_heads(CLUSTER_HEAD)):
        head = model.network.heads[name]
        assert isinstance(head, nn.Linear)
        path = ("head start", number) if number else ("head start",)
        by_first = partial(
            start_head_by_k_means,
            *(head, store.n_answered, features_of, derive_seed(seed, *path), spherical),
            only_look=not model.processes.is_first,
        )
        model.processes.with_barrier(by_first)
        model.processes.broadcast([head.weight, head.bias])


@torch.no_grad()
def start_head_by_k_means(
    head: nn.Linear,
    n_images: int,
    features_of: Callable[[np.ndarray], np.ndarray],
    seed: int,
    spherical: bool = False,
    *,
    only_look: bool = False,
) -> None:
    """Sets `head` so that its arg-max is the nearest of K centres of the images' features.

    `features_of` takes sorted rows, all N or a sample of them, and gives their features (x D).
    `spherical` compares directions alone: after instance contrast, which compares cosines, lengths
    say little about what an image shows. The head sees the lengths all the same, so its arg-max is
    then the nearest centre but for images of unusual length near a border. `only_look` helps to
    find the features, and leaves the head to another process.
    """
    random = np.random.default_rng(seed)
    rows = np.arange(n_images)
    if n_images > MOST_IMAGES:
        rows = np.sort(random.choice(n_images, MOST_IMAGES, replace=False))
    features = features_of(rows)
    if only_look:
        return
    lengths = np.linalg.norm(features, axis=1, keepdims=True).clip(min=1e-8)
    given = features / lengths if spherical else features
    centres = _centres(given, head.out_features, int(random.integers(2**31)), spherical)
    # -|f - c|^2 / 2 is linear in f up to a part that all clusters share.
    middle = centres.mean(axis=0)
    weight = centres - middle
    bias = -0.5 * ((centres**2).sum(axis=1) - (middle**2).sum())
    if spherical:
        bias = bias * lengths.mean()
    scale = SHARPNESS / max((features @ weight.T + bias).std(), 1e-8)
    head.weight.copy_(torch.from_numpy(weight * scale))
    head.bias.copy_(torch.from_numpy(bias * scale))


def _centres(features: np.ndarray, n_clusters: int, seed: int, spherical: bool) -> np.ndarray:
    """K x D"""
    from sklearn.cluster import KMeans  # two seconds that most runs do not need

    k_means = KMeans(n_clusters, n_init=20, random_state=seed)
    with library_threads():
        if not spherical or min(features.shape) <= MOST_DIRECTIONS:
            return np.asarray(k_means.fit(features).cluster_centers_)
        middle = features.mean(axis=0)
        away = features - middle
        # eigh sorts ascending: the last directions hold the most variance.
        directions = np.linalg.eigh(away.T @ away)[1][:, -MOST_DIRECTIONS:]
        return np.asarray(k_means.fit(away @ directions).cluster_centers_ @ directions.T + middle)
