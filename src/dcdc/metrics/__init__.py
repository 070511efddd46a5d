"""How good a partition is: against targets where there are any, and by itself."""

from dcdc.metrics.health import PartitionHealth, health_warnings, label_free_score, partition_health
from dcdc.metrics.matching import contingency_table, match_clusters
from dcdc.metrics.scores import (
    adjusted_rand_index,
    cluster_accuracy,
    cluster_purity,
    normalized_mutual_info,
    overall_purity,
    score,
)

__all__ = [
    "PartitionHealth",
    "adjusted_rand_index",
    "cluster_accuracy",
    "cluster_purity",
    "contingency_table",
    "health_warnings",
    "label_free_score",
    "match_clusters",
    "normalized_mutual_info",
    "overall_purity",
    "partition_health",
    "score",
]
