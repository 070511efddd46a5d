"""A mixture of Gaussians on principal components of feature vectors.

Dempster, Laird and Rubin, Maximum likelihood from incomplete data via the EM algorithm, 1977. Each
cluster is a Gaussian of its own width in every direction; an image belongs to each in the share in
which it may come from it. It begins at K-Means.

Settings: ours. Directions of the vectors, as K-Means has them, and few components, so that every
Gaussian has images enough for its covariance.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from dcdc.data import VectorSet
from dcdc.methods.context import Clustering, Context
from dcdc.methods.points import points_of, principal_components
from dcdc.methods.training_context import check_above_zero

_SCALE = 10.0
"""Directions have length 1 and hundreds of components: as they are, the floor of a covariance
(1e-6, scikit-learn's) would be no small number beside theirs."""


def cluster(
    image_set: VectorSet,
    n_clusters: int,
    seed: int,
    _context: Context,
    *,
    n_components: int = 32,
    n_init: int = 3,
    iterations: int = 200,
) -> Clustering:
    check_above_zero(n_components=n_components, n_init=n_init, iterations=iterations)
    points = principal_components(points_of(image_set), n_components, seed) * _SCALE
    mixture = GaussianMixture(
        n_clusters, n_init=n_init, max_iter=iterations, random_state=seed, reg_covar=1e-3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # assignments settle before shares do
        shares = mixture.fit(points.astype(np.float64)).predict_proba(points)
    return Clustering(
        shares.argmax(axis=1).astype(np.int64),
        probabilities=shares.astype(np.float32),
        features=points,
    )
