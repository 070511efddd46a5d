"""Which epoch a figure is taken from, on histories made by hand."""

from math import inf, nan

import pytest

from dcdc.experiments.chosen_epoch import (
    EpochScores,
    best_by_labels,
    choose,
    cluster_head_loss,
    smallest_loss,
)

BOTH = {"sample_view": 1.0, "class_view": 1.0, "balance": 0.0}


def line(epoch, loss=None, acc=None, *, evaluated=True, **more):
    found = {"epoch": epoch, "loss": 9.0, "over_clustering_head/sample_view": -epoch, **more}
    if loss is not None:
        found |= {"cluster_head/sample_view": loss / 2, "cluster_head/class_view": loss / 2}
    if evaluated:
        found["active_clusters"] = 3
    if acc is not None:
        found |= {"acc": acc, "nmi": acc / 2, "ari": acc / 4}
    return found


def epoch_of(found):
    return None if found is None else found["epoch"]


def test_three_choices_from_one_history():
    history = [line(1, 5.0, 0.5), line(2, 3.0, 0.6), line(3, 4.0, 0.9), line(4, 3.5, 0.7)]
    chosen = choose(history, BOTH)
    assert chosen["last"] == EpochScores(4, {"nmi": 0.35, "acc": 0.7, "ari": 0.175})
    assert chosen["smallest_loss"].epoch == 2
    assert chosen["by_labels"].epoch == 3


def test_nothing_is_chosen_from_nothing():
    assert choose([], BOTH) == {"last": None, "smallest_loss": None, "by_labels": None}


@pytest.mark.parametrize(
    ("history", "epoch"),
    [
        ([line(1, 2.0), line(2, 2.0), line(3, 4.0)], 2),  # of equals the later
        ([line(1, 2.0), line(2, nan), line(3, inf)], 1),
        ([line(1), line(2, 5.0)], 2),  # the cluster head rested
        ([line(1, 3.0), line(2, 1.0, evaluated=False)], 1),  # nothing to show for epoch 2
        ([line(1), line(2)], None),
        ([line(1, nan)], None),
    ],
)
def test_the_smallest_loss_of_the_cluster_head(history, epoch):
    assert epoch_of(smallest_loss(history, BOTH)) == epoch


def test_where_self_labels_end_a_run_its_last_epoch_is_chosen():
    ending = {"epoch": 3, "acc": 0.2, "self_label": 0.5, "phase": "self_label"}
    history = [line(1, loss=1.0, acc=0.9), line(2, loss=2.0, acc=0.5), ending]
    assert smallest_loss(history, {}) is ending


def test_the_loss_is_weighted_as_it_was_trained():
    terms = {"cluster_head/sample_view": 1.0, "cluster_head/class_view": 3.0}
    assert cluster_head_loss(terms, {"sample_view": 1.0, "class_view": 0.5}) == 2.5
    assert cluster_head_loss({"loss": 1.0, "over_clustering_head/sample_view": 1.0}, BOTH) is None
    few_of_one, few_of_other = line(1), line(2)
    few_of_one |= {"cluster_head/sample_view": 2.0, "cluster_head/class_view": 1.0}
    few_of_other |= {"cluster_head/sample_view": 1.0, "cluster_head/class_view": 2.5}
    assert epoch_of(smallest_loss([few_of_one, few_of_other], BOTH)) == 1
    heavy = {"sample_view": 2.0, "class_view": 0.1}
    assert epoch_of(smallest_loss([few_of_one, few_of_other], heavy)) == 2


@pytest.mark.parametrize(
    ("history", "epoch"),
    [
        ([line(1, acc=0.4), line(2, acc=0.8), line(3, acc=0.8)], 2),  # of equals the first
        ([line(1, acc=0.4), line(2, acc=nan)], 1),
        ([line(1), line(2, acc=0.1)], 2),
        ([line(1), line(2)], None),
    ],
)
def test_the_best_epoch_by_labels(history, epoch):
    assert epoch_of(best_by_labels(history)) == epoch


def test_without_labels_the_epoch_is_chosen_all_the_same_and_has_no_scores():
    chosen = choose([line(1, 2.0), line(2, 3.0)], BOTH)
    assert chosen == {
        "last": EpochScores(2, {}),
        "smallest_loss": EpochScores(1, {}),
        "by_labels": None,
    }


def test_labels_play_no_part_in_the_smallest_loss():
    good = [line(1, 5.0, 0.1), line(2, 3.0, 0.2), line(3, 4.0, 0.9)]
    bad = [dict(each, acc=1 - each["acc"], nmi=nan, ari=0) for each in good]
    assert epoch_of(smallest_loss(good, BOTH)) == epoch_of(smallest_loss(bad, BOTH)) == 2
