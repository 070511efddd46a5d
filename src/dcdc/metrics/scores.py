"""The figures of a result table, in one call."""

import math
from collections.abc import Iterable

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


def is_highest(figure: float, figures: Iterable[float]) -> bool:
    """Whether none of them is higher by more than rounding.

    Of one partition under other numbers, NMI sums up in another order.
    """
    return math.isclose(figure, max(figures), rel_tol=1e-9, abs_tol=1e-12)
