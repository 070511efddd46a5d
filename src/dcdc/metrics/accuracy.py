"""Cluster accuracy (ACC): the share of images whose cluster is matched to their class."""

from numpy.typing import ArrayLike

from dcdc.metrics.matching import contingency_table, matched_cells


def cluster_accuracy(targets: ArrayLike, assignments: ArrayLike) -> float:
    """Between 0 and 1, under the best one-to-one matching of clusters to classes."""
    table = contingency_table(targets, assignments)
    return float(table[matched_cells(table)].sum() / table.sum())
