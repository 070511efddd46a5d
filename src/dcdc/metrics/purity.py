"""Purity: how far a cluster's images belong to one class."""

from typing import Any

from numpy.typing import ArrayLike

from dcdc.metrics.labels import pair_labels
from dcdc.metrics.matching import contingency_table


def cluster_purity(targets: ArrayLike, assignments: ArrayLike) -> dict[Any, float]:
    """cluster -> share of its most frequent class."""
    pairs = pair_labels(targets, assignments)
    purity = pairs.table.max(axis=0) / pairs.table.sum(axis=0)
    return dict(zip(pairs.clusters, purity.tolist(), strict=True))


def overall_purity(targets: ArrayLike, assignments: ArrayLike) -> float:
    """Share of the images that belong to the most frequent class of their cluster."""
    table = contingency_table(targets, assignments)
    return float(table.max(axis=0).sum() / table.sum())
