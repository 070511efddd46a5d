"""A linear rule that tells clusters apart, and how a few corrections move it.

The rule is Fisher's discriminant: clusters are clouds of one shape around their means, and an image
goes to the most likely one. It is linear in the features, so it is a cluster head. Corrected images
weigh more than others in the means. Whoever the corrections move to another cluster counts there in
the next round, as in EM with labelled and unlabelled data (Nigam et al., 2000); who is not moved
stays where it was, so that corrections alone move anything.

Shapes: n images, m of them corrected, D features, P directions, K clusters.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcdc.runtime.library_threads import library_threads

N_ROUNDS = 5
MOST_DIRECTIONS = 256
"""In which clouds are looked at: those of most variance. In more, a single image that weighs much
is told from all others, and nobody follows it."""
SHRINKAGE = 0.3
"""How far the clouds' shape is drawn to a ball, as few images do not tell it."""
MOST_OF_CLUSTER = 0.1
"""What one corrected image weighs at most, of the mean size of a cluster."""
_UNLIKELY = -50.0
"""Logarithm of how likely a cluster is that nobody is in, beside the others."""
Floats = NDArray[np.float64]
Settle = Callable[[Floats], NDArray[np.integer]]


class LinearRule(NamedTuple):
    weight: Floats
    """K x P or, as a head, K x D"""
    bias: Floats
    """K"""

    def scores(self, points: NDArray[np.floating]) -> Floats:
        """n x K: how likely each cluster is, as logarithms but for a part that all share."""
        return np.asarray(points @ self.weight.T + self.bias)


class Clouds:
    """The images of which rules are made."""

    def __init__(self, features: NDArray[np.float32], n_clusters: int) -> None:
        """`features`: n x D"""
        self.n_clusters = n_clusters
        self._middle = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        away = features - self._middle
        axes = np.linalg.eigh((away.T @ away).astype(np.float64))[1]  # the last of most variance
        self._axes = axes[:, -MOST_DIRECTIONS:]
        self.points: NDArray[np.float32] = away @ self._axes.astype(np.float32)
        """n x P"""
        self._squares = (self.points.T @ self.points).astype(np.float64)

    def rule(self, clusters: NDArray[np.integer], weights: NDArray[np.float32]) -> LinearRule:
        """Of n `clusters`, each image with its weight, which may be 0."""
        points = self.points
        told = np.zeros((len(points), self.n_clusters), np.float32)
        told[np.arange(len(points)), clusters] = weights
        sizes = told.sum(axis=0, dtype=np.float64)
        means = (told.T @ points) / np.maximum(sizes, np.finfo(np.float64).tiny)[:, None]
        unlike = np.flatnonzero(weights != 1)
        more = (points[unlike].T * (weights[unlike] - 1)) @ points[unlike]
        within = (self._squares + more - (means.T * sizes) @ means) / sizes.sum()
        weight = discriminants(means, within)
        bias = self._log_shares(clusters, weights) - 0.5 * (weight * means).sum(axis=1)
        return LinearRule(weight, np.where(sizes > 0, bias, bias.min() + _UNLIKELY))

    def _log_shares(self, clusters: NDArray[np.integer], weights: NDArray[np.float32]) -> Floats:
        """K: of images that nobody corrected; a cluster that has none yet may be as large as
        others are."""
        sizes = np.bincount(clusters[weights == 1], minlength=self.n_clusters)
        usual = max(1.0, len(clusters) / max(1, (sizes > 0).sum()))
        return np.log(np.where(sizes > 0, sizes, usual))

    def as_head(self, rule: LinearRule) -> LinearRule:
        """The same scores of features as they are."""
        weight = rule.weight @ self._axes.T
        return LinearRule(weight, rule.bias - weight @ self._middle)


def discriminants(means: Floats, within: Floats) -> Floats:
    """K x P: what to multiply features by, of clouds around these means (K x P) that share the
    covariance `within` (P x P)."""
    ball = max(np.trace(within) / len(within), float(np.finfo(np.float32).tiny))
    shape = (1 - SHRINKAGE) * within + SHRINKAGE * ball * np.eye(len(within))
    return np.asarray(np.linalg.solve(shape, means.T).T)


def corrected_head(
    features: NDArray[np.float32],
    earlier: NDArray[np.integer],
    n_clusters: int,
    corrected: NDArray[np.integer],
    settle: Settle,
    *,
    label_share: float,
    mean_confidence: float,
) -> LinearRule:
    """Of n images and their `earlier` clusters. `corrected`: m rows, whose clusters `settle` tells
    by their scores (m x K). `label_share`: what they weigh together, as a share of all images.
    `mean_confidence`: the mean share of the first choice that the head is to have."""
    with library_threads():
        clouds = Clouds(features, n_clusters)
        rule = _corrected(clouds, earlier, corrected, settle, label_share)
        factor = factor_for(rule.scores(clouds.points), mean_confidence)
        return clouds.as_head(LinearRule(rule.weight * factor, rule.bias * factor))


def _corrected(
    clouds: Clouds,
    earlier: NDArray[np.integer],
    corrected: NDArray[np.integer],
    settle: Settle,
    label_share: float,
) -> LinearRule:
    n_images = len(earlier)
    weights = np.ones(n_images, np.float32)
    weights[corrected] = 0
    rule = clouds.rule(earlier, weights)
    if not len(corrected):
        return rule
    scores = rule.scores(clouds.points)
    labels = settle(scores[corrected])
    earlier = with_followers(
        clouds.points, earlier, corrected, labels, scores[corrected].argmax(axis=1)
    )
    scores = clouds.rule(earlier, weights).scores(clouds.points)
    before = scores.argmax(axis=1)
    most = MOST_OF_CLUSTER * n_images / clouds.n_clusters
    weights[corrected] = max(1.0, min(label_share * n_images / len(corrected), most))
    clusters = earlier.copy()
    for _ in range(N_ROUNDS):
        clusters[corrected] = settle(scores[corrected])
        rule = clouds.rule(clusters, weights)
        scores = rule.scores(clouds.points)
        now = scores.argmax(axis=1)
        clusters = np.where(now != before, now, earlier)
    return rule


def with_followers(
    points: NDArray[np.float32],
    earlier: NDArray[np.integer],
    corrected: NDArray[np.integer],
    labels: NDArray[np.integer],
    sources: NDArray[np.integer],
) -> NDArray[np.integer]:
    """`earlier` (n), with images for clusters that have corrected ones (m `labels`) alone. A new
    cluster takes those that lie nearer to its mean than to that of their own cluster, where this
    one is among the `sources` (m) that its corrected images would be in otherwise.

    By distance: a cluster of two kinds is wide in the direction that tells them apart, so that
    discriminants would make little of it."""
    found = earlier.copy()
    is_free = np.ones(len(earlier), bool)
    is_free[corrected] = False
    for cluster in np.setdiff1d(labels, earlier[is_free]):
        founders = labels == cluster
        middle = points[corrected[founders]].mean(axis=0)
        for source in np.unique(sources[founders]):
            members = np.flatnonzero(is_free & (earlier == source))
            if len(members):
                own = points[members].mean(axis=0)
                nearer = (points[members] - (own + middle) / 2) @ (middle - own) > 0
                found[members[nearer]] = cluster
    return found


def factor_for(scores: Floats, mean_confidence: float) -> float:
    """By which scores (n x K) are to be multiplied, so that the mean share of the first choice is
    that; as near as it can be."""
    away = scores - scores.max(axis=1, keepdims=True)
    low, high = -7.0, 7.0  # of its logarithm
    for _ in range(30):
        middle = (low + high) / 2
        found = (1 / np.exp(np.exp(middle) * away).sum(axis=1)).mean()
        low, high = (middle, high) if found < mean_confidence else (low, middle)
    return float(np.exp(low))
