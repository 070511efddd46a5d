"""Spectral clustering of pixels, or of the directions of feature vectors.

Zelnik-Manor and Perona, Self-tuning spectral clustering, 2004, is what the paper cites: images are
nodes, near ones are joined, and K-Means groups the leading eigenvectors of the graph. Up to
`exact_up_to` images the graph joins each to its nearest neighbours (von Luxburg, A tutorial on
spectral clustering, 2007). Above, it joins images to landmarks, and the work grows with the images
alone (Chen and Cai, Large scale spectral clustering with landmark-based representation, 2011).

Settings: the number of landmarks, that K-Means finds them and how many an image has are Chen and
Cai's; K vectors, with rows of length one, Ng, Jordan and Weiss's (On spectral clustering: analysis
and an algorithm, 2001); a kernel as wide as an image's own farthest landmark is Zelnik-Manor and
Perona's. The principal components are ours, for speed.

Shapes: N images, D components, p landmarks, r of them near an image, K clusters.
"""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from dcdc.data import Data
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import find_micro_clusters, points_of, principal_components

_SMALLEST = 1e-12


def cluster(
    image_set: Data,
    n_clusters: int,
    seed: int,
    _context: Context,
    *,
    n_neighbours: int = 10,
    exact_up_to: int = 5000,
    n_components: int = 100,
    n_landmarks: int = 1000,
    n_near: int = 5,
    n_init: int = 10,
) -> Clustering:
    n_images = image_set.n_images
    if n_images <= max(exact_up_to, n_landmarks, n_clusters):
        spectral = SpectralClustering(
            n_clusters,
            n_components=min(n_clusters, n_images - 1),
            affinity="nearest_neighbors",
            n_neighbors=min(n_neighbours, n_images),
            n_init=n_init,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Graph is not fully connected")  # it may be so
            found = spectral.fit_predict(points_of(image_set))
        return Clustering(found.astype(np.int64))
    points = principal_components(points_of(image_set), n_components, seed)
    landmarks, _ = find_micro_clusters(points, max(n_landmarks, n_clusters), seed)
    vectors = singular_vectors(near_landmarks(points, landmarks, n_near), n_clusters)
    k_means = KMeans(n_clusters, n_init=n_init, random_state=seed)
    return Clustering(k_means.fit_predict(normalize(vectors)).astype(np.int64), features=vectors)


def near_landmarks(
    points: NDArray[np.float32], landmarks: NDArray[np.float32], n_near: int
) -> csr_matrix:
    """N x p, r weights a row that sum to 1."""
    nearest = NearestNeighbors(n_neighbors=min(n_near, len(landmarks))).fit(landmarks)
    distances, columns = nearest.kneighbors(points)
    squares = distances**2
    widths = np.maximum(squares.max(axis=1, keepdims=True), _SMALLEST)
    weights = normalize(np.exp(-squares / widths), norm="l1")
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    return csr_matrix((weights.ravel(), columns.ravel(), starts), (len(points), len(landmarks)))


def singular_vectors(weights: csr_matrix, n_vectors: int) -> NDArray[np.float32]:
    """N x K, the leading ones of the weights with every landmark's sum evened out."""
    sums = np.maximum(weights.sum(axis=0).A1, _SMALLEST)
    even = csr_matrix(weights @ diags_array(1 / np.sqrt(sums)))
    values, right = np.linalg.eigh((even.T @ even).toarray())
    kept = np.argsort(values)[::-1][:n_vectors]
    lengths = np.sqrt(np.maximum(values[kept], _SMALLEST))
    return np.asarray(even @ (right[:, kept] / lengths), np.float32)
