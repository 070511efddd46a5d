"""Scores of a partition against targets: ACC, NMI, ARI and purity, and all of them in one call."""

import math
from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from dcdc.metrics.matching import contingency_table, matched_cells, pair_labels


def cluster_accuracy(targets: ArrayLike, assignments: ArrayLike) -> float:
    """Between 0 and 1, under the best one-to-one matching of clusters to classes."""
    table = contingency_table(targets, assignments)
    return float(table[matched_cells(table)].sum() / table.sum())


def normalized_mutual_info(targets: ArrayLike, assignments: ArrayLike) -> float:
    """NMI: mutual information over the arithmetic mean of the two entropies."""
    from sklearn.metrics import normalized_mutual_info_score  # 70 MB wait until they are needed

    pairs = pair_labels(targets, assignments)
    return float(
        normalized_mutual_info_score(
            pairs.class_codes, pairs.cluster_codes, average_method="arithmetic"
        )
    )


def adjusted_rand_index(targets: ArrayLike, assignments: ArrayLike) -> float:
    """ARI: agreement over pairs of images, 0 by chance, 1 when the partitions are the same."""
    from sklearn.metrics import adjusted_rand_score

    pairs = pair_labels(targets, assignments)
    return float(adjusted_rand_score(pairs.class_codes, pairs.cluster_codes))


def cluster_purity(targets: ArrayLike, assignments: ArrayLike) -> dict[Any, float]:
    """cluster -> share of its most frequent class."""
    pairs = pair_labels(targets, assignments)
    purity = pairs.table.max(axis=0) / pairs.table.sum(axis=0)
    return dict(zip(pairs.clusters, purity.tolist(), strict=True))


def overall_purity(targets: ArrayLike, assignments: ArrayLike) -> float:
    """Share of the images that belong to the most frequent class of their cluster."""
    table = contingency_table(targets, assignments)
    return float(table.max(axis=0).sum() / table.sum())


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
