"""Outliers among training images: those of no large group vouch for nobody."""

import numpy as np
import pytest

from dcdc.engine import outliers
from dcdc.engine.joined_groups import joined_groups, small_groups, smallest_cluster
from dcdc.engine.out_of_distribution import out_of_distribution_score_of
from dcdc.engine.outliers import outside_among, score_among
from dcdc.metrics.hierarchy import joined_labels


def mixture(sizes: list[int], width: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Clouds far apart, of so many rows each; and the number of each row's cloud."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    middles = 8 * np.eye(len(sizes), width)
    return (middles[labels] + random.normal(size=(len(labels), width))).astype(np.float32), labels


def flagged(features: np.ndarray, n_clusters: int, sizes="equal") -> np.ndarray:
    known, vouch = score_among(features, n_clusters, sizes, seed=0)
    return outside_among(known, features, vouch)


def test_a_group_that_is_too_small_for_a_cluster_is_outside():
    """Each of its images has others like it: the plain score takes them for ordinary."""
    features, labels = mixture([100, 100, 100, 30])
    plain = out_of_distribution_score_of(features).own_scores() > 1
    assert plain[labels == 3].mean() < 0.2
    found = flagged(features, 3)
    assert found[labels == 3].mean() > 0.95
    assert found[labels < 3].mean() < 0.03


def test_features_of_hundreds_of_numbers_hide_no_group():
    """Most of them are noise, in which every image is as far from every other."""
    features, labels = mixture([300, 300, 300, 90], width=600)
    found = flagged(features, 3)
    assert found[labels == 3].mean() > 0.95
    assert found[labels < 3].mean() < 0.03


def test_ordinary_rows_are_of_a_sample_and_without_the_group(monkeypatch):
    monkeypatch.setattr(outliers, "MOST_IMAGES", 200)
    features, labels = mixture([100, 100, 100, 30])
    rows = outliers.ordinary_rows(features, 3, seed=0)
    assert len(rows) <= 165  # every second
    assert set(labels[rows]) == {0, 1, 2}
    assert len(rows) > 0.9 * 150
    few = features[:10]
    assert outliers.ordinary_rows(few, 3, seed=0).tolist() == list(range(10))


@pytest.mark.parametrize(("n_draws", "are_outside"), [(1, False), (2, True)])
def test_who_vouches_does_so_by_every_draw_of_groups(n_draws, are_outside, monkeypatch):
    """The first puts strangers into a group of a cluster's, which vouches as a whole."""
    features, labels = mixture([100, 100, 100, 12])
    mixed = np.where(labels == 3, 0, labels)
    monkeypatch.setattr(outliers, "small_groups", lambda _, __, seed: (mixed, labels)[seed])
    monkeypatch.setattr(outliers, "DRAWS", n_draws)
    _, vouch = score_among(features, 3, "equal", seed=0)
    assert (~vouch[labels == 3]).all() == are_outside
    assert vouch[labels < 3].all()


@pytest.mark.parametrize(
    ("n_missed", "begins", "vouches"), [(1, True, True), (2, True, False), (5, False, False)]
)
def test_a_cluster_that_a_few_draws_miss_still_begins(n_missed, begins, vouches, monkeypatch):
    """Some draws put it together with strangers, too far from all others to vouch."""
    features, labels = mixture([100, 100, 100, 100])
    first_groups = outliers._first_groups
    n_drawn = iter(range(40))

    def groups_of_a_draw(points, groups, *how):
        found = first_groups(points, groups, *how)
        missed = set(groups[labels == 3]) if next(n_drawn) % outliers.DRAWS < n_missed else set()
        return [group for group in found if group not in missed]

    monkeypatch.setattr(outliers, "_first_groups", groups_of_a_draw)
    rows = outliers.ordinary_rows(features, 4, seed=0)
    assert bool((labels[rows] == 3).mean() > 0.2) is begins
    _, vouch = score_among(features, 4, "equal", seed=0)
    assert bool(vouch[labels == 3].mean() > 0.9) is vouches


def test_where_the_draws_leave_too_few_nothing_is_told(monkeypatch):
    features, labels = mixture([100, 100, 100])
    parts = [labels, np.where(labels < 2, labels, 2 + np.arange(300) % 12)]
    monkeypatch.setattr(outliers, "small_groups", lambda _, __, seed: parts[seed])
    monkeypatch.setattr(outliers, "DRAWS", 2)
    monkeypatch.setattr(outliers, "_spread", lambda _, __, vouch, ___: vouch & (labels != 2))
    known, _ = score_among(features, 3, "equal", seed=0)
    assert known is not None
    monkeypatch.setattr(outliers, "_spread", lambda _, __, vouch, ___: vouch & (labels == 0))
    known, _ = score_among(features, 3, "equal", seed=0)
    assert known is None


def test_single_images_are_outside():
    features, _ = mixture([100, 100, 100])
    random = np.random.default_rng(5)
    strangers = 20 * random.normal(size=(9, 12)).astype(np.float32)
    found = flagged(np.concatenate([features, strangers]), 3)
    assert found[300:].all()
    assert found[:300].mean() < 0.03


def test_where_clusters_may_be_small_a_small_group_is_one():
    features, labels = mixture([100, 100, 40])
    assert flagged(features, 3, "free")[labels == 2].mean() < 0.2
    assert flagged(features, 2)[labels == 2].mean() > 0.9


def test_without_outliers_few_are_called_so():
    features, _ = mixture([100, 100, 100, 100])
    assert flagged(features, 4).mean() < 0.03


def test_what_joins_a_cluster_before_another_is_whole_vouches_for_nobody():
    """The third cloud has two parts, too small for a cluster each. Strangers are nearer to the
    first cloud than these parts to one another, so they join it first."""
    middles = np.zeros((5, 12))
    middles[[1, 2, 3, 4], [0, 1, 1, 2]] = 20, 20, 29, 7
    labels = np.repeat(np.arange(5), [100, 100, 52, 48, 25])
    noise = np.random.default_rng(0).normal(size=(len(labels), 12))
    features = (middles[labels] + noise).astype(np.float32)
    groups = small_groups(features, 3, seed=0)
    joined = joined_labels(features, groups, 3, smallest_cluster(len(labels), 3, "equal"))
    assert set(joined[labels == 4]) == set(joined[labels == 0])
    found = flagged(features, 3)
    assert found[labels == 4].mean() > 0.95
    assert found[labels < 4].mean() < 0.03


def test_of_a_mixed_group_ordinary_images_alone_vouch():
    groups, ordinary = np.repeat([0, 1], [60, 5]), np.repeat([True, False], [63, 2])
    features = np.random.default_rng(0).normal(size=(65, 4)).astype(np.float32)
    features[~ordinary] += 40
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outliers, "small_groups", lambda *_: groups)
        _, vouch = score_among(features, 1, "equal", seed=0)
    assert vouch[:60].all()
    assert not vouch[~ordinary].any()


@pytest.mark.parametrize("made_alike", [True, False])
def test_what_images_are_made_of_tells_whether_a_group_is_part_of_a_cluster(made_alike):
    features, labels = mixture([100, 100, 100, 30])
    means = np.random.default_rng(1).normal(size=(330, 6)).astype(np.float32)
    means[labels == 3] += 0 if made_alike else 20
    known, vouch = score_among(features, 3, "equal", 0, means)
    assert vouch[labels == 3].all() == made_alike
    found = outside_among(known, features, vouch)
    assert (found[labels == 3].mean() < 0.1) == made_alike
    assert found[labels < 3].mean() < 0.03


def test_feature_vectors_are_looked_at_with_their_lengths():
    """Strangers lie in the direction of a cluster, and are longer: by directions alone they are
    part of it."""
    middles = np.zeros((4, 12))
    middles[[0, 1, 2, 3], [0, 1, 2, 0]] = 8, 8, 8, 24
    labels = np.repeat(np.arange(4), [100, 100, 100, 30])
    random = np.random.default_rng(0)
    given = (middles[labels] + random.normal(size=(330, 12))).astype(np.float32)
    features = given / np.linalg.norm(given, axis=1, keepdims=True)
    _, by_directions = score_among(features, 3, "equal", seed=0)
    assert by_directions[labels == 3].mean() > 0.9
    _, vouch = score_among(features, 3, "equal", seed=0, given=given)
    assert not vouch[labels == 3].any()
    assert vouch[labels < 3].mean() > 0.97
    kept = outliers.ordinary_rows(features, 3, seed=0, given=given)
    assert set(labels[kept]) == {0, 1, 2}


def test_joined_groups_are_the_clusters():
    features, labels = mixture([150, 60, 15])
    found = joined_groups(features, 3, "free", seed=0)
    assert len({(a, b) for a, b in zip(found, labels, strict=True)}) == 3
    assert joined_groups(features[:10], 3, "equal", seed=0).max() <= 2


@pytest.mark.parametrize("n_rows", [3, 19])
def test_of_few_images_nothing_is_told(n_rows):
    known, vouch = score_among(mixture([n_rows])[0], 2, "equal", seed=0)
    assert known is None
    assert len(vouch) == n_rows
