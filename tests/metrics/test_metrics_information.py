import numpy as np
import pytest

from dcdc.metrics import adjusted_rand_index, normalized_mutual_info

TARGETS = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
ASSIGNMENTS = np.array([0, 0, 1, 1, 1, 1, 2, 2, 0])


def entropy(shares):
    return -sum(share * np.log(share) for share in np.ravel(shares) if share > 0)


def joint_shares(targets, assignments):
    return np.array(
        [
            [np.mean((targets == t) & (assignments == a)) for a in np.unique(assignments)]
            for t in np.unique(targets)
        ]
    )


def test_nmi_is_mutual_information_over_the_arithmetic_mean_of_entropies():
    shares = joint_shares(TARGETS, ASSIGNMENTS)
    h_targets, h_assignments = entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0))
    truth = (h_targets + h_assignments - entropy(shares)) / ((h_targets + h_assignments) / 2)
    assert normalized_mutual_info(TARGETS, ASSIGNMENTS) == pytest.approx(truth)
    # the other usual mean would give another number for these
    halves = np.where(ASSIGNMENTS == 0, 0, 1)
    shares = joint_shares(TARGETS, halves)
    h_targets, h_halves = entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0))
    mutual = h_targets + h_halves - entropy(shares)
    assert abs(mutual / np.sqrt(h_targets * h_halves) - 2 * mutual / (h_targets + h_halves)) > 1e-3
    assert normalized_mutual_info(TARGETS, halves) == pytest.approx(
        2 * mutual / (h_targets + h_halves)
    )


def test_ari_by_counting_pairs():
    first, second = np.triu_indices(len(TARGETS), 1)
    same_class = TARGETS[first] == TARGETS[second]
    same_cluster = ASSIGNMENTS[first] == ASSIGNMENTS[second]
    agree = (same_class & same_cluster).sum()
    by_chance = same_class.sum() * same_cluster.sum() / len(first)
    best = (same_class.sum() + same_cluster.sum()) / 2
    truth = (agree - by_chance) / (best - by_chance)
    assert adjusted_rand_index(TARGETS, ASSIGNMENTS) == pytest.approx(truth)


@pytest.mark.parametrize("metric", [normalized_mutual_info, adjusted_rand_index])
def test_names_do_not_matter(metric):
    named = np.array(["z", "a", "m"])[ASSIGNMENTS]
    assert metric(TARGETS, named) == pytest.approx(metric(TARGETS, ASSIGNMENTS))
    assert metric(TARGETS, np.zeros(9, int)) == pytest.approx(0)
    assert isinstance(metric(TARGETS, named), float)
