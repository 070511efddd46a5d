"""Everything that has parameters: the front, backbones, heads and the clustering network."""

from dcdc.networks.backbones import (
    BACKBONE_SCHEMES,
    BACKBONES,
    Backbone,
    Pretrained,
    build_backbone,
    find_backbone,
)
from dcdc.networks.clustering import (
    CLUSTER_HEAD,
    OVER_CLUSTERING_HEAD,
    ClusteringNetwork,
    NetworkOutput,
)
from dcdc.networks.convolution import Convolution, WeightGradientStream, weight_gradients_on
from dcdc.networks.copy_group_norm import (
    CopyGroupNorm,
    CopyGroupNorm1d,
    convert_copy_group_norm,
    copy_groups,
    share_statistics,
)
from dcdc.networks.patches import PatchBackbone
from dcdc.networks.pretrained.python_modules import register_module

__all__ = [
    "BACKBONES",
    "BACKBONE_SCHEMES",
    "CLUSTER_HEAD",
    "OVER_CLUSTERING_HEAD",
    "Backbone",
    "ClusteringNetwork",
    "Convolution",
    "CopyGroupNorm",
    "CopyGroupNorm1d",
    "NetworkOutput",
    "PatchBackbone",
    "Pretrained",
    "WeightGradientStream",
    "build_backbone",
    "convert_copy_group_norm",
    "copy_groups",
    "find_backbone",
    "register_module",
    "share_statistics",
    "weight_gradients_on",
]
