"""Non-negative matrix factorisation of pixels, or of feature vectors without a value below 0.

Lee and Seung, Learning the parts of objects by non-negative matrix factorization, 1999. An image is
a sum of parts, with no part taken away; how much it has of each is its code, and K-Means groups the
codes.

This is not yet the method that the paper cites: Cai et al., Locality preserving nonnegative matrix
factorization, 2009. Of that one it has as many parts as clusters, each of length one, and K-Means
on the codes; its term by which near images get near codes, from a graph of neighbours, is missing.

Settings: up to `exact_up_to` images scikit-learn's coordinate descent; above, its steps on
mini-batches (Lefèvre, Bach and Févotte, Online algorithms for nonnegative matrix factorization with
the Itakura-Saito divergence, 2011), in as many passes as take seconds on 60,000 images.
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.exceptions import ConvergenceWarning

from dcdc.data import Data
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import values_of


def cluster(
    image_set: Data,
    n_clusters: int,
    seed: int,
    _context: Context,
    *,
    exact_up_to: int = 5000,
    iterations: int = 200,
    passes: int = 20,
    batch_size: int = 1024,
    n_init: int = 10,
) -> Clustering:
    if image_set.n_images <= exact_up_to:
        nmf = NMF(n_clusters, max_iter=iterations, random_state=seed)
    else:
        nmf = MiniBatchNMF(n_clusters, max_iter=passes, batch_size=batch_size, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # codes settle long before residuals
        codes = nmf.fit_transform(values_of(image_set))
    codes *= np.linalg.norm(nmf.components_, axis=1)
    k_means = KMeans(n_clusters, n_init=n_init, random_state=seed)
    return Clustering(k_means.fit_predict(codes).astype(np.int64), features=codes)
