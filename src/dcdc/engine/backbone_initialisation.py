"""What a network takes from its images or feature vectors before any training."""

import torch

from dcdc.data.vector_store import VectorStore
from dcdc.engine.context import TrainingContext
from dcdc.engine.patch_dictionary import initialise_patch_backbone
from dcdc.networks import ClusteringNetwork
from dcdc.networks.patches import PatchBackbone

_CHUNK = 8192


def initialise_backbone(context: TrainingContext) -> None:
    """A dictionary of patches, the middle of feature vectors; most networks take nothing."""
    if isinstance(context.network.backbone, PatchBackbone):
        initialise_patch_backbone(context)
    if isinstance(context.store, VectorStore):
        find_middle(context.network, context.store)


@torch.no_grad()
def find_middle(network: ClusteringNetwork, store: VectorStore) -> None:
    """The mean of all rows, from which their directions are seen."""
    assert network.directions is not None
    total = torch.zeros(network.n_features, dtype=torch.float64)
    for rows in store.in_chunks(_CHUNK):
        total += rows.sum(dim=0).cpu().double()
    network.directions.middle.copy_(total / store.n_answered)
