"""Images that belong to no cluster, among those that a model was trained on.

The out-of-distribution score compares an image with training images. Here some of these are to be
found out themselves, and several that are alike would vouch for one another. So only images of
groups that are large enough to be clusters vouch for others.

Shapes: n images, D features, K clusters.
"""

import numpy as np
from numpy.typing import NDArray

from dcdc.engine.joined_groups import joined_groups
from dcdc.engine.out_of_distribution import OutOfDistributionScore, out_of_distribution_score_of
from dcdc.losses.sizes import Sizes
from dcdc.metrics.health import OUTLIER


def score_among(
    features: NDArray[np.floating], n_clusters: int, sizes: Sizes, seed: int
) -> tuple[OutOfDistributionScore | None, NDArray[np.bool_]]:
    """Of the images with these features (n x D): the score to those of them that vouch for others,
    and which these are (n)."""
    labels = joined_groups(features.astype(np.float32), n_clusters, sizes, seed)
    vouch = labels != OUTLIER
    return out_of_distribution_score_of(features[vouch]), vouch


def scores_among(
    known: OutOfDistributionScore, features: NDArray[np.floating], vouch: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """n: of the same images, those that vouch for others by all but themselves."""
    scores = known.score(features)
    scores[vouch] = known.own_scores()
    return scores
