"""The figures of a result table, in one call."""

from numpy.typing import ArrayLike

from dcdc.metrics.accuracy import cluster_accuracy
from dcdc.metrics.information import adjusted_rand_index, normalized_mutual_info
from dcdc.metrics.purity import overall_purity


def score(targets: ArrayLike, assignments: ArrayLike) -> dict[str, float]:
    return {
        "acc": cluster_accuracy(targets, assignments),
        "nmi": normalized_mutual_info(targets, assignments),
        "ari": adjusted_rand_index(targets, assignments),
        "purity": overall_purity(targets, assignments),
    }
