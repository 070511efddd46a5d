"""Images that belong to no cluster, among those that a model was trained on.

The out-of-distribution score compares an image with training images. Here some of these are to be
found out themselves, and several that are alike would vouch for one another. So the images are put
into small groups, and only those of groups that together are large enough for a cluster vouch for
others; then other groups that are near to these, too.

Shapes: n images, D features, K clusters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.data.store import Store
from dcdc.engine.joined_groups import small_groups, smallest_cluster
from dcdc.engine.out_of_distribution import OutOfDistributionScore, out_of_distribution_score_of
from dcdc.engine.sample import MOST_IMAGES, in_half_precision, sampled_rows
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.sizes import Sizes
from dcdc.metrics.health import OUTLIER
from dcdc.metrics.hierarchy import joined_labels
from dcdc.runtime.seeding import derive_seed

NEAR = 1.5
"""The median score up to which a group is a part of a cluster that was not joined: those of digits
are at 1.3, those of strangers at 2 and more (docs/log.md)."""


class Outliers(NamedTuple):
    outside: NDArray[np.bool_]
    """N"""
    vouch: NDArray[np.bool_]
    """n: which of the sampled images vouch for others"""
    reference: NDArray[np.float16]
    """Features of these, as a run keeps them."""


def find_outliers(
    model: TrainedModel, store: Store, n_clusters: int, sizes: Sizes, seed: int
) -> Outliers | None:
    """Among all images that are answered, by a sample of them; None where too few are alike to
    tell."""
    n_images = store.n_answered
    rows = sampled_rows(n_images, seed)
    features = in_half_precision(model.features_of(store, rows))
    start = derive_seed(seed, "outliers") % 2**31
    known, vouch = score_among(features, n_clusters, sizes, start)
    if known is None:
        return None
    outside = np.zeros(n_images, bool)
    others = np.setdiff1d(np.arange(n_images), rows)
    for some in np.array_split(others, len(others) // MOST_IMAGES + 1):
        if len(some):
            outside[some] = known.score(model.features_of(store, some)) > 1
    outside[rows] = scores_among(known, features, vouch) > 1
    return Outliers(outside, vouch, features[vouch])


def score_among(
    features: NDArray[np.floating], n_clusters: int, sizes: Sizes, seed: int
) -> tuple[OutOfDistributionScore | None, NDArray[np.bool_]]:
    """Of the images with these features (n x D): the score to those of them that vouch for others,
    and which these are (n)."""
    points = features.astype(np.float32)
    groups = small_groups(points, n_clusters, seed)
    fewest = smallest_cluster(len(points), n_clusters, sizes)
    vouch = joined_labels(points, groups, n_clusters, fewest) != OUTLIER
    while True:
        known = out_of_distribution_score_of(features[vouch])
        if known is None:
            return None, vouch
        scores = scores_among(known, features, vouch)
        near = [
            group
            for group in np.unique(groups[~vouch])
            if np.median(scores[groups == group]) <= NEAR
        ]
        if not near:
            return known, vouch
        vouch = vouch | np.isin(groups, near)


def scores_among(
    known: OutOfDistributionScore, features: NDArray[np.floating], vouch: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """n: of the same images, those that vouch for others by all but themselves."""
    scores = known.score(features)
    scores[vouch] = known.own_scores()
    return scores
