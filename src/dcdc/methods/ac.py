"""Agglomerative clustering of pixels, or of feature vectors.

Gowda and Krishna, Agglomerative clustering using the concept of mutual nearest neighbourhood, 1978,
is what the paper cites: every image begins as a cluster, and the nearest two clusters become one
until K are left. Nearest is Ward's here (Hierarchical grouping to optimize an objective function,
1963), the merger that adds least to the squared distances from the centres. Above `exact_up_to`
images it begins from micro-clusters of near images, each with its weight, as BIRCH does (Zhang,
Ramakrishnan and Livny, 1996): the distances between 60,000 images would take 14 GB.

Settings: ours, chosen on CIFAR-10. Images are compared by direction, as seen from their mean, so
that contrast alone sets none apart; where they are many, by principal components that are evened
out half-way, so that brightness alone does not decide. Ward on plain pixels was a matter of luck,
by any way of joining (docs/log.md).

Shapes: N images, D components, p micro-clusters, K clusters.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering
from sklearn.preprocessing import normalize

from dcdc.data import Data
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import find_micro_clusters, principal_components, values_of

_SMALLEST = 1e-6


def cluster(
    image_set: Data,
    n_clusters: int,
    seed: int,
    _context: Context,
    *,
    exact_up_to: int = 5000,
    n_components: int = 100,
    n_micro_clusters: int = 1000,
) -> Clustering:
    """Up to `exact_up_to` images the seed changes nothing."""
    points = values_of(image_set)
    points -= points.mean(axis=0)
    if len(points) <= max(exact_up_to, n_micro_clusters, n_clusters):
        ward = AgglomerativeClustering(n_clusters, linkage="ward")
        return Clustering(ward.fit_predict(normalize(points, copy=False)).astype(np.int64))
    points = normalize(half_even(principal_components(points, n_components, seed)))
    _, groups = find_micro_clusters(points, max(n_micro_clusters, n_clusters), seed)
    filled, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    centres = np.zeros((len(filled), points.shape[1]))
    np.add.at(centres, groups, points)
    merged_into = merge_micro_clusters(centres / sizes[:, None], sizes, n_clusters)
    return Clustering(merged_into[groups], features=points)


def half_even(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """N x D, each column by the root of its spread: half-way to whitened."""
    spreads = np.maximum(points.std(axis=0), _SMALLEST)
    return np.asarray(points / np.sqrt(spreads), np.float32)


def merge_micro_clusters(
    centres: NDArray[np.float64], sizes: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """The cluster of each, p; by Lance and Williams's update of Ward's distances, 1967."""
    n_micro_clusters = len(centres)
    weights = sizes.astype(np.float64)
    squares = (centres**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * centres @ centres.T, 0)
    distances *= weights[:, None] * weights / (weights[:, None] + weights)
    np.fill_diagonal(distances, np.inf)
    merged_into = np.arange(n_micro_clusters)
    gone = np.zeros(n_micro_clusters, bool)
    for _ in range(n_micro_clusters - n_clusters):
        kept, lost = divmod(int(distances.argmin()), n_micro_clusters)
        of_kept, of_lost = weights[kept] + weights, weights[lost] + weights
        between = distances[kept, lost]
        gone[lost] = True
        # Infinity stays so: those that are gone, and a cluster from itself.
        merged = of_kept * distances[kept] + of_lost * distances[lost] - weights * between
        merged /= weights[kept] + weights[lost] + weights
        merged[gone] = merged[kept] = np.inf
        distances[kept] = distances[:, kept] = merged
        distances[lost] = distances[:, lost] = np.inf
        weights[kept] += weights[lost]
        merged_into[merged_into == lost] = kept
    return np.unique(merged_into, return_inverse=True)[1].astype(np.int64)
