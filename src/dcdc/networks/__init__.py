"""Everything that has parameters: the front, the trunks, the heads and the clustering network."""

from dcdc.networks.clustering import (
    CLUSTER_HEAD,
    OVER_CLUSTERING_HEAD,
    TRUNKS,
    ClusteringNetwork,
    NetworkOutput,
)

__all__ = [
    "CLUSTER_HEAD",
    "OVER_CLUSTERING_HEAD",
    "TRUNKS",
    "ClusteringNetwork",
    "NetworkOutput",
]
