import subprocess
import sys

import numpy as np

from dcdc.metrics import (
    adjusted_rand_index,
    cluster_accuracy,
    normalized_mutual_info,
    overall_purity,
    score,
)
from dcdc.metrics.scores import is_highest

TARGETS = [0, 0, 0, 1, 1, 2, 2]
ASSIGNMENTS = ["x", "x", "y", "y", "z", "w", "x"]


def test_every_figure_under_its_name():
    assert score(TARGETS, ASSIGNMENTS) == {
        "acc": cluster_accuracy(TARGETS, ASSIGNMENTS),
        "nmi": normalized_mutual_info(TARGETS, ASSIGNMENTS),
        "ari": adjusted_rand_index(TARGETS, ASSIGNMENTS),
        "purity": overall_purity(TARGETS, ASSIGNMENTS),
    }
    assert len(set(score(TARGETS, ASSIGNMENTS).values())) == 4


def test_the_same_partition_under_other_numbers_is_as_good():
    """The order of the numbers is the order of NMI's sums, which round."""
    random = np.random.default_rng(0)
    rounded = 0
    for _ in range(50):
        targets = random.integers(7, size=200)
        assignments = np.where(random.random(200) < 0.8, targets, random.integers(7, size=200))
        renamed = random.permutation(7)[assignments]
        one, other = score(targets, assignments), score(targets, renamed)
        rounded += one != other
        for name in one:
            assert is_highest(one[name], [one[name], other[name]])
            assert is_highest(other[name], [one[name], other[name]])
    assert rounded


def test_a_figure_that_is_less_by_one_image_of_a_million_is_not_the_highest():
    assert not is_highest(0.5 - 1e-6, [0.5, 0.5 - 1e-6])
    assert is_highest(0.5, [0.5, 0.5 - 1e-6])


def test_metrics_do_without_torch():
    code = "import sys, dcdc.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
