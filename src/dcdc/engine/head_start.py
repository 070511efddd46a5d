"""A start for the cluster head where training found its features first.

Heads that start at random beside an untrained trunk settle early into a poor partition and stay
there (docs/log.md has the figures); K-Means on features that the over-clustering head has already
shaped gives them a good one to improve.

Shapes: N images, D features, K clusters.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

MOST_IMAGES = 20_000
SHARPNESS = 3.0
"""Standard deviation of the first logits: sure enough to teach, soft enough to be corrected."""


@torch.no_grad()
def start_head_by_k_means(
    head: nn.Linear, n_images: int, features_of: Callable[[np.ndarray], np.ndarray], seed: int
) -> None:
    """Sets `head` so that its arg-max is the nearest of K centres of the images' features.

    `features_of` takes sorted rows, all N or a sample of them, and gives their features (x D).
    """
    from sklearn.cluster import KMeans  # two seconds that most runs do not need

    random = np.random.default_rng(seed)
    rows = np.arange(n_images)
    if n_images > MOST_IMAGES:
        rows = np.sort(random.choice(n_images, MOST_IMAGES, replace=False))
    features = features_of(rows)
    k_means = KMeans(head.out_features, n_init=20, random_state=int(random.integers(2**31)))
    centres = k_means.fit(features).cluster_centers_
    # -|f - c|^2 / 2 is linear in f up to a part that all clusters share.
    middle = centres.mean(axis=0)
    weight = centres - middle
    bias = -0.5 * ((centres**2).sum(axis=1) - (middle**2).sum())
    scale = SHARPNESS / max((features @ weight.T + bias).std(), 1e-8)
    head.weight.copy_(torch.from_numpy(weight * scale))
    head.bias.copy_(torch.from_numpy(bias * scale))
