"""What every metric that compares two labellings accepts and refuses."""

import numpy as np
import pytest

from dcdc.errors import InputError
from dcdc.metrics import (
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    contingency_table,
    match_clusters,
    normalized_mutual_info,
    overall_purity,
    score,
)

COMPARING = [
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    contingency_table,
    match_clusters,
    normalized_mutual_info,
    overall_purity,
    score,
]


@pytest.mark.parametrize("metric", COMPARING)
@pytest.mark.parametrize(
    ("targets", "assignments", "message"),
    [
        ([0, 1], [0, 1, 1], "2 targets but 3 assignments"),
        ([], [], r"targets has shape \(0,\)"),
        ([[0, 1]], [0, 1], r"targets has shape \(1, 2\)"),
        (0, [0], r"targets has shape \(\)"),
        ([0, 1], [[0], [1]], r"assignments has shape \(2, 1\)"),
        ([0, 1], [0, float("nan")], "assignments has NaN at position 1"),
        ([0.5, 1], [0, 1], "targets has type float64"),
        (["a", float("nan")], [0, 1], "targets has mixed or missing"),
        ([None, 1], [0, 1], "targets has mixed or missing"),
        ([[0], [1, 2]], [0, 1], "targets cannot be read"),
    ],
)
def test_what_is_no_pair_of_labellings_is_refused(metric, targets, assignments, message):
    with pytest.raises(InputError, match=message):
        metric(targets, assignments)


@pytest.mark.parametrize(
    "targets",
    [
        ["b", "b", "a", "c"],
        np.array(["b", "b", "a", "c"], object),
        np.array([b"b", b"b", b"a", b"c"]),
        np.array([1, 1, 0, 250], np.uint8),
        np.array([-(2**60), -(2**60), 3, 2**60]),
        np.array([2**63, 2**63, 1, 2**63 + 1], np.uint64),
        (7, 7, 5, 9),
    ],
)
def test_any_integer_or_string_type(targets):
    assert cluster_accuracy(targets, [0, 0, 1, 1]) == 0.75
    assert cluster_accuracy([0, 0, 1, 1], targets) == 0.75


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [[0], [0, 0, 0], list(range(60)), [True, False, True]])
def test_a_partition_agrees_with_itself_without_a_warning(labels):
    assert score(labels, labels) == pytest.approx({"acc": 1, "nmi": 1, "ari": 1, "purity": 1})
