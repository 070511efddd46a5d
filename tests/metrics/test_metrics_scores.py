import subprocess
import sys

from dcdc.metrics import (
    adjusted_rand_index,
    cluster_accuracy,
    normalized_mutual_info,
    overall_purity,
    score,
)

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


def test_metrics_do_without_torch():
    code = "import sys, dcdc.metrics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
