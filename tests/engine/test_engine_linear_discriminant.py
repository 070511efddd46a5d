"""The rule that tells clusters apart, against a slow one, and what corrections make of it."""

import math

import numpy as np
import pytest

from dcdc.engine import linear_discriminant
from dcdc.engine.linear_discriminant import (
    SHRINKAGE,
    Clouds,
    corrected_head,
    factor_for,
    with_followers,
)


def three_kinds(n_images=150, width=10, seed=0):
    random = np.random.default_rng(seed)
    kinds = np.arange(n_images) % 3
    middles = 3 * np.random.default_rng(1).normal(size=(3, width))
    return (middles[kinds] + random.normal(size=(n_images, width))).astype(np.float32), kinds


def test_the_rule_is_the_gaussian_of_one_shape_that_a_loop_finds():
    features, kinds = three_kinds(30, 4)
    weights = np.ones(30, np.float32)
    weights[[0, 1, 7]] = [5, 0, 2]
    clouds = Clouds(features, 3)
    head = clouds.as_head(clouds.rule(kinds, weights))
    exact = features.astype(np.float64)
    means = [
        sum(weights[i] * exact[i] for i in range(30) if kinds[i] == k)
        / sum(weights[i] for i in range(30) if kinds[i] == k)
        for k in range(3)
    ]
    within = np.zeros((4, 4))
    for row, kind, weight in zip(exact, kinds, weights, strict=True):
        within += weight * np.outer(row - means[kind], row - means[kind])
    within /= weights.sum()
    shape = (1 - SHRINKAGE) * within + SHRINKAGE * np.trace(within) / 4 * np.eye(4)
    inverse = np.linalg.inv(shape)
    sizes = [sum(weights[i] == 1 and kinds[i] == k for i in range(30)) for k in range(3)]
    for row in exact[:5]:
        likely = [
            math.log(sizes[k]) - 0.5 * (row - means[k]) @ inverse @ (row - means[k])
            for k in range(3)
        ]
        ours = head.scores(row[None])[0]
        assert ours - ours[0] == pytest.approx(np.array(likely) - likely[0], rel=1e-3, abs=1e-3)


def wrong_group(n_wrong=15):
    """Some images of kind 2 are in the cluster of kind 1, and a little apart from the rest."""
    features, kinds = three_kinds()
    wrong = np.flatnonzero(kinds == 2)[:n_wrong]
    features[wrong] += 1.5
    earlier = kinds.copy()
    earlier[wrong] = 1
    return features, kinds, earlier, wrong


def head_of(features, earlier, corrected, labels, label_share=0.06):
    return corrected_head(
        features,
        earlier,
        3,
        np.asarray(corrected, np.int64),
        lambda _: np.asarray(labels),
        label_share=label_share,
        mean_confidence=0.9,
    )


def test_uncorrected_images_of_the_same_kind_follow():
    features, kinds, earlier, wrong = wrong_group()
    alone = head_of(features, earlier, [], []).scores(features).argmax(axis=1)
    assert (alone[wrong] == 2).mean() < 0.5
    taught = head_of(features, earlier, wrong[:3], [2, 2, 2]).scores(features).argmax(axis=1)
    assert (taught[wrong[3:]] == 2).all()
    others = np.setdiff1d(np.arange(len(kinds)), wrong)
    assert (taught[others] == kinds[others]).all()


def test_corrected_images_that_weigh_nothing_teach_nothing(monkeypatch):
    features, _, earlier, wrong = wrong_group()
    monkeypatch.setattr(linear_discriminant, "N_ROUNDS", 1)
    taught = head_of(features, earlier, wrong[:1], [2], label_share=0.0)
    assert (taught.scores(features).argmax(axis=1)[wrong[1:]] == 2).mean() < 0.7


def test_without_corrections_clusters_that_are_apart_stay_as_they_are():
    features, kinds = three_kinds()
    head = head_of(features, kinds, [], [])
    assert (head.scores(features).argmax(axis=1) == kinds).all()


def test_the_head_is_as_sure_as_it_is_asked_to_be():
    features, kinds = three_kinds()
    features[::2] = features[::2] * 0.2
    for wanted in (0.5, 0.8, 0.95):
        head = corrected_head(
            *(features, kinds, 3, np.empty(0, np.int64), lambda scores: scores),
            label_share=0.1,
            mean_confidence=wanted,
        )
        scores = head.scores(features)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        confidence = shares.max(axis=1) / shares.sum(axis=1)
        assert confidence.mean() == pytest.approx(wanted, abs=0.01)


def test_a_factor_has_its_bounds():
    assert 0 < factor_for(np.zeros((3, 2)), 0.9) < np.inf
    assert 0 < factor_for(np.eye(3), 1.0) < np.inf


def test_a_new_cluster_takes_those_that_lie_nearer_to_its_mean():
    points = np.array([[0, 0], [1, 0], [2, 0], [9, 0], [10, 0], [0, 50]], np.float32)
    earlier = np.array([0, 0, 0, 0, 2, 1])
    found = with_followers(points, earlier, np.array([4]), np.array([2]), np.array([0]))
    assert found.tolist() == [0, 0, 0, 2, 2, 1]  # 9 is nearer to 10 than to 3, the others' mean
    same = with_followers(points, earlier, np.array([4]), np.array([1]), np.array([0]))
    assert same.tolist() == earlier.tolist()  # cluster 1 has images of its own


def test_a_cluster_that_nobody_is_in_answers_nothing_and_is_finite():
    features, kinds = three_kinds()
    clouds = Clouds(features, 4)
    rule = clouds.rule(kinds, np.ones(len(kinds), np.float32))
    assert np.isfinite(rule.bias).all()
    assert (rule.scores(clouds.points).argmax(axis=1) != 3).all()


def test_more_features_than_images_and_features_that_are_all_equal():
    features, kinds = three_kinds(12, 40)
    head = head_of(features, kinds, [0], [0])
    assert (head.scores(features).argmax(axis=1) == kinds).all()
    flat = head_of(np.ones((12, 40), np.float32), kinds, [0], [0])
    assert all(np.isfinite(part).all() for part in flat)
