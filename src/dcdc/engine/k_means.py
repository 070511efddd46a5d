"""K-Means on features: the points that it looks at, its centres, and which of them is the nearest.

Shapes: N images, D numbers of each, K clusters.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dcdc.runtime.library_threads import library_threads

if TYPE_CHECKING:  # two seconds that a page of a finished run does without
    import torch

MOST_DIRECTIONS = 64
"""Of unit features, in which their K-Means looks: the same centres in a tenth of the time."""
STARTS = 20
"""Of K-Means for one head. Several heads have one start each: they are to differ, and the loss
chooses among them later."""
BALANCED_ROUNDS, SINKHORN_ROUNDS = 20, 20
SOFTNESS = 0.05
"""Of shares: a cosine that is so much lower has a third of the share."""


def k_means_centres(
    features: np.ndarray,
    n_clusters: int,
    seed: int,
    n_init: int = STARTS,
    device: "torch.device | None" = None,
) -> np.ndarray:
    """K x D of unit features, or of features whose directions count."""
    points, back = reduced_points(features, spherical=True)
    return back(centres_of(points, n_clusters, seed, n_init, device))


def centres_of(
    points: np.ndarray,
    n_clusters: int,
    seed: int,
    n_init: int,
    device: "torch.device | None" = None,
) -> np.ndarray:
    """K x D, by K-Means: on a GPU, where `device` is one."""
    if device is not None and device.type == "cuda":
        from dcdc.engine.device_k_means import device_k_means

        return device_k_means(points, n_clusters, seed, n_init, device)
    from sklearn.cluster import KMeans  # two seconds that most runs do not need
    from sklearn.exceptions import ConvergenceWarning

    with library_threads(), warnings.catch_warnings():
        # too few different rows for K clusters: the health of the partition tells of empty ones
        warnings.simplefilter("ignore", ConvergenceWarning)
        k_means = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points)
    return np.asarray(k_means.cluster_centers_)


def nearest_centre(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """N: for each of `points` (N x D) the number of its centre (of K x D)."""
    nearness = points @ centres.T - 0.5 * (centres**2).sum(axis=1)
    return np.asarray(nearness.argmax(axis=1))


def reduced_points(
    features: np.ndarray, spherical: bool
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The points that K-Means looks at, and what brings its centres back to features."""
    if not spherical or min(features.shape) <= MOST_DIRECTIONS:
        return features, lambda centres: centres
    with library_threads():
        middle = features.mean(axis=0)
        away = features - middle
        # eigh sorts ascending: the last directions hold the most variance.
        directions = np.linalg.eigh(away.T @ away)[1][:, -MOST_DIRECTIONS:]
        return away @ directions, lambda centres: centres @ directions.T + middle


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """At length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-12))


def some_rows(n_images: int, most: int, random: np.random.Generator) -> np.ndarray:
    """All of them or, of more than `most`, so many drawn; rising."""
    if n_images <= most:
        return np.arange(n_images)
    return np.sort(random.choice(n_images, most, replace=False))


def balanced_centres(
    points: np.ndarray, centres: np.ndarray, device: "torch.device | None" = None
) -> np.ndarray:
    """K x D of length 1: K-Means by cosine whose clusters all have the same size, from `centres`.

    Each round shares the images (N x D, of length 1) out evenly, by optimal transport with
    entropy (Sinkhorn's iteration), as self-labelling does (Asano et al., 2020). Plain K-Means
    leaves images that are like nothing in particular to one cluster, which then is too large.
    On a GPU, where `device` is one.
    """
    if device is not None and device.type == "cuda":
        from dcdc.engine.device_k_means import device_balanced_centres

        return device_balanced_centres(points, centres, device)
    found = unit_rows(centres)
    with library_threads():
        for _ in range(BALANCED_ROUNDS):
            found = unit_rows(_even_shares(points @ found.T).T @ points)
    return found


def _even_shares(cosines: np.ndarray) -> np.ndarray:
    """N x K: of each image in each cluster; rows sum to 1, columns to about N / K."""
    away = (cosines - cosines.max(axis=1, keepdims=True)).astype(np.float64)
    near = np.exp(away / SOFTNESS)
    of_image, of_cluster = np.ones(len(near)), np.ones(near.shape[1])
    for _ in range(SINKHORN_ROUNDS):  # by a factor for each row and column: `near` is read alone
        of_cluster = 1 / np.maximum(of_image @ near, 1e-300)
        of_image = 1 / np.maximum(near @ of_cluster, 1e-300)
    return np.asarray((near * of_cluster * of_image[:, None]).astype(cosines.dtype))
