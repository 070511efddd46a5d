"""NMF that keeps neighbours together, of pixels, or of feature vectors without a value below 0.

Cai, He, Wang, Bao and Han, Locality preserving nonnegative matrix factorization, 2009. An image is
a sum of parts, with no part taken away (Lee and Seung, Learning the parts of objects by
non-negative matrix factorization, 1999); how much it has of each is its code. What the parts make
diverges from the image, and codes of near images, joined in a graph of neighbours, from each
other: both divergences are Kullback's and Leibler's, and their sum is made small. K-Means groups
the codes, each as shares of its image.

As there: as many parts as clusters, parts that sum to 1, the two divergences, joined pairs of equal
weight. The slope of a logarithm of two near codes is taken for that of their quotient, as its
authors do; the linear system that this leaves is gone towards by a step each time, instead of
solved. Ours: the start, from scikit-learn's plain factorisation in mini-batches (from random parts
photos were still far off after 50 iterations), and the neighbours, by cosine of at most 100
principal components. Weight, neighbours and shares were chosen with labels, on digits and on a
sample of CIFAR-10's training part (docs/log.md).

Shapes: N images, D numbers each, K clusters and parts.
"""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.decomposition import MiniBatchNMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from dcdc.data import Data
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.errors import InputError
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import principal_components, values_of
from dcdc.methods.training_context import check_above_zero
from dcdc.runtime.device import pick_device

N_COMPONENTS = 100
FIRST_PASSES = 20
"""Of the plain factorisation, in batches of 1,024 images."""
_LEAST = 1e-2
"""Of the mean: what is 0 in the plain factorisation could never grow again."""
_TINY = 1e-9
_ROWS = 4096


def cluster(
    image_set: Data,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    locality: float = 1.0,
    n_neighbours: int = 5,
    iterations: int = 100,
    n_init: int = 10,
) -> Clustering:
    """`locality` is the weight of the divergence between neighbours; 0: plain factorisation."""
    check_above_zero(n_neighbours=n_neighbours, iterations=iterations)
    if locality < 0:
        raise InputError(f"locality = {locality} must not be below 0")
    near = principal_components(values_of(image_set), N_COMPONENTS, seed)
    graph = neighbour_graph(near, min(n_neighbours, len(near) - 1), context.device)
    points = values_of(image_set)
    codes, parts = plain_start(points, n_clusters, seed)
    context.observer.note(f"{graph.nnz // 2:,} pairs of neighbours")
    codes, _ = factorise(points, codes, parts, graph, locality, iterations)
    shares = normalize(codes, norm="l1")
    found = KMeans(n_clusters, n_init=n_init, random_state=seed).fit_predict(shares)
    return Clustering(found.astype(np.int64), features=shares)


def neighbour_graph(points: NDArray[np.float32], k: int, device: str) -> csr_array:
    """N x N, symmetric: 1 where one of two images is among the other's k nearest."""
    near = nearest_neighbours(points, k, pick_device(device)).numpy()
    starts = np.arange(0, near.size + 1, k)
    graph = csr_array((np.ones(near.size, np.float32), near.ravel(), starts), (len(near),) * 2)
    return csr_array(graph.maximum(graph.T))


def plain_start(
    points: NDArray[np.float32], n_parts: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Codes, N x K, and parts, K x D, that sum to 1; none of them is 0."""
    plain = MiniBatchNMF(n_parts, max_iter=FIRST_PASSES, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is a start
        codes = plain.fit_transform(points)
    parts = np.maximum(plain.components_, _LEAST * plain.components_.mean())
    sums = parts.sum(axis=1)
    codes = codes * sums
    return np.maximum(codes, _LEAST * codes.mean()), parts / sums[:, None]


def factorise(
    points: NDArray[np.float32],
    codes: NDArray[np.float32],
    parts: NDArray[np.float32],
    graph: csr_array,
    locality: float,
    iterations: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Codes and parts of points (N x D) at a lower sum of divergences, by EM: each number of an
    image is shared out among the parts that make it, then each code moves towards what was shared
    out to it and towards its neighbours' codes."""
    pull = 2 * locality
    degrees = graph.sum(axis=1)[:, None].astype(codes.dtype)
    for _ in range(iterations):
        own = np.empty_like(codes)
        wanted = np.zeros_like(parts)
        for start in range(0, len(points), _ROWS):
            rows = slice(start, start + _ROWS)
            ratio = points[rows] / np.maximum(codes[rows] @ parts, _TINY)
            own[rows] = codes[rows] * (ratio @ parts.T)
            wanted += codes[rows].T @ ratio
        parts = normalize(np.maximum(parts * wanted, _TINY), norm="l1")
        codes = np.maximum((own + pull * (graph @ codes)) / (1 + pull * degrees), _TINY)
    return codes, parts
