"""Everything that has parameters: the front, the trunks, the heads and the clustering network."""

from dcdc.networks.clustering import (
    CLUSTER_HEAD,
    OVER_CLUSTERING_HEAD,
    PROJECTION,
    TRUNKS,
    ClusteringNetwork,
    NetworkOutput,
)
from dcdc.networks.convolution import Aside, Convolution, weight_gradients_aside
from dcdc.networks.copy_group_norm import CopyGroupNorm, copy_groups, share_statistics
from dcdc.networks.patches import PatchTrunk

__all__ = [
    "CLUSTER_HEAD",
    "OVER_CLUSTERING_HEAD",
    "PROJECTION",
    "TRUNKS",
    "Aside",
    "ClusteringNetwork",
    "Convolution",
    "CopyGroupNorm",
    "NetworkOutput",
    "PatchTrunk",
    "copy_groups",
    "share_statistics",
    "weight_gradients_aside",
]
