"""Images that belong to no cluster, among those that a model was trained on.

The out-of-distribution score compares an image with training images. Here some of these are to be
found out themselves, and several that are alike would vouch for one another. So the images are put
into small groups, of which the nearest join. At first only those of branches vouch for others that
have just become large enough for a cluster: what joins a cluster late may be strange. From there it
spreads to near groups, but only by images that are ordinary themselves: a group may be mixed. Which
images share a group is drawn several times: a stranger gets among others by some of the draws, an
image of a cluster by nearly all.

Shapes: n images, D features, C maps, K clusters.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.data.store import Store
from dcdc.engine.joined_groups import small_groups, smallest_cluster
from dcdc.engine.out_of_distribution import OutOfDistributionScore, out_of_distribution_score_of
from dcdc.engine.sample import MOST_IMAGES, in_half_precision, sampled_rows
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.metrics.hierarchy import join_clusters
from dcdc.runtime.seeding import derive_seed

NEAR = 1.3
"""The median score up to which what is left of a group is near: its ordinary images vouch, too."""
PART = 1.35
"""The same at the end: up to it a group is a part of a cluster as a whole. It brings in no others,
or one group of strangers would bring in the next. By the means of maps, groups of digits are at
1.38 and less, those of strangers at 1.38 and more (docs/log.md)."""
PART_BY_FEATURES = 1.4
"""The same where there are no maps: by features groups of digits are farther."""

DRAWS = 10
"""Of small groups."""
NEARLY_ALL, MOST = 0.9, 0.6
"""Of the draws, by which who vouches does so: what is outside is told by nearly all, and where
clusters begin by most. A draw may miss a whole cluster, which would then have no place."""
FEWEST_DIRECTIONS = 8
"""By which features are looked at where no maps are shown, or as many as there are clusters."""
MORE_DIRECTIONS_OF_GIVEN = 2
"""Than clusters, by which feature vectors that were given are looked at: nobody taught the network
that made them to tell these clusters apart, so that strangers may differ by one of their own."""


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
    means, given = model.map_means_of(store, rows), model.given_vectors_of(store, rows)
    known, vouch = score_among(features, n_clusters, sizes, start, means, given)
    if known is None:
        return None
    outside = np.zeros(n_images, bool)
    others = np.setdiff1d(np.arange(n_images), rows)
    for some in np.array_split(others, len(others) // MOST_IMAGES + 1):
        if len(some):
            outside[some] = known.score(model.features_of(store, some)) > 1
    outside[rows] = outside_among(known, features, vouch)
    return Outliers(outside, vouch, features[vouch])


def score_among(
    features: NDArray[np.floating],
    n_clusters: int,
    sizes: Sizes,
    seed: int,
    map_means: NDArray[np.floating] | None = None,
    given: NDArray[np.floating] | None = None,
) -> tuple[OutOfDistributionScore | None, NDArray[np.bool_]]:
    """Of the images with these features (n x D): the score to those of them that vouch for others,
    and which these are (n). It is told by `map_means` (n x C), where they are known, else by the
    vectors that were `given` (n x D), of which features are the directions: lengths tell, too."""
    can_tell, vouch = _vouching(features, n_clusters, sizes, seed, NEARLY_ALL, map_means, given)
    return out_of_distribution_score_of(features[vouch]) if can_tell else None, vouch


def _vouching(
    features: NDArray[np.floating],
    n_clusters: int,
    sizes: Sizes,
    seed: int,
    share: float,
    map_means: NDArray[np.floating] | None = None,
    given: NDArray[np.floating] | None = None,
) -> tuple[bool, NDArray[np.bool_]]:
    """Whether anything can be told, and who vouches for others (n), by that share of the draws. It
    is told by `map_means` (n x C), where they are known: by what an image is made of, wherever in
    it that is."""
    points = (features if given is None else given).astype(np.float32)
    if given is not None:
        points = _leading(points, n_clusters + MORE_DIRECTIONS_OF_GIVEN)
    elif map_means is None:
        points = _leading(points, max(FEWEST_DIRECTIONS, n_clusters))
    looked_at, part = (points, PART_BY_FEATURES) if map_means is None else (map_means, PART)
    n_draws = np.zeros(len(points), np.int64)
    for draw in range(DRAWS):
        groups = small_groups(points, n_clusters, (seed + draw) % 2**31)
        first = np.isin(groups, _first_groups(points, groups, n_clusters, sizes))
        by_draw = _spread(looked_at, groups, first, part)
        if by_draw is None:
            return False, first
        n_draws += by_draw
    vouch = n_draws >= ceil(share * DRAWS)
    return vouch.sum() >= n_clusters * smallest_cluster(len(points), n_clusters, sizes), vouch


def _spread(
    points: NDArray[np.floating],
    groups: NDArray[np.int64],
    vouch: NDArray[np.bool_],
    part: float,
) -> NDArray[np.bool_] | None:
    """n: who vouches where these do at first; None where too few do."""
    while True:
        near_these = out_of_distribution_score_of(points[vouch])
        if near_these is None:
            return None
        scores = scores_among(near_these, points, vouch)
        ordinary = _near(groups, scores, ~vouch, NEAR) & (scores <= 1)
        if not ordinary.any():
            return vouch | _near(groups, scores, ~vouch, part)
        vouch = vouch | ordinary


def _leading(points: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """N x n: the directions in which they differ most, which tell clusters apart. In hundreds, all
    brought to one scale, every image is as far from every other, and nobody is strange."""
    if points.shape[1] <= n:
        return points
    centred = points - points.mean(axis=0)
    # ascending: the last ones hold the most variance
    axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)[1][:, -n:]
    return np.asarray(centred @ axes, np.float32)


def ordinary_rows(
    features: NDArray[np.floating],
    n_clusters: int,
    seed: int,
    given: NDArray[np.floating] | None = None,
) -> NDArray[np.int64]:
    """Of at most 5,000 of the images with these features (n x D), those that vouch for others; all
    of them where nothing can be told. Clusters of equal size begin with these, or strangers would
    have one of their own. `given` (n x D) as for `score_among`."""
    rows = np.arange(0, len(features), -(-len(features) // MOST_IMAGES))
    some_given = None if given is None else given[rows]
    can_tell, vouch = _vouching(features[rows], n_clusters, EQUAL, seed, MOST, given=some_given)
    return rows[vouch] if can_tell else rows


def _first_groups(
    points: NDArray[np.floating], groups: NDArray[np.int64], n_clusters: int, sizes: Sizes
) -> list[int]:
    """Those of the smallest branches that are large enough for a cluster."""
    fewest = smallest_cluster(len(points), n_clusters, sizes)
    counts = np.bincount(groups)
    joined = join_clusters(points, groups, len(counts))
    return [group for branch in joined.smallest_branches(counts, fewest) for group in branch]


def _near(
    groups: NDArray[np.int64], scores: NDArray[np.float32], left: NDArray[np.bool_], most: float
) -> NDArray[np.bool_]:
    """n: images that are left, and with them at least half of what is left of their group has at
    most this score."""
    near = [
        group
        for group in np.unique(groups[left])
        if np.median(scores[left & (groups == group)]) <= most
    ]
    return left & np.isin(groups, near)


def outside_among(
    known: OutOfDistributionScore, features: NDArray[np.floating], vouch: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """n: of the same images. Who may not vouch is strange together with its group, even where its
    features are near: some strangers may vouch all the same."""
    return ~vouch | (scores_among(known, features, vouch) > 1)


def scores_among(
    known: OutOfDistributionScore, features: NDArray[np.floating], vouch: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """n: of the same images, those that vouch for others by all but themselves."""
    scores = known.score(features)
    scores[vouch] = known.own_scores()
    return scores
