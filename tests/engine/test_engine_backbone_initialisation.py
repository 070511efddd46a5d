"""What a network takes from feature vectors before any training."""

import numpy as np
import torch

from dcdc.data.vector_store import open_vector_store
from dcdc.engine import backbone_initialisation
from dcdc.engine.backbone_initialisation import find_middle
from dcdc.networks import ClusteringNetwork, build_backbone


def test_the_middle_is_the_mean_of_all_rows_however_they_are_cut(monkeypatch):
    vectors = np.random.default_rng(0).normal(3, 1, (25, 6)).astype(np.float32)
    network = ClusteringNetwork(
        build_backbone("vectors", 6),
        in_channels=6,
        n_clusters=2,
        mean=(0.0,),
        std=(1.0,),
        takes_vectors=True,
    )
    for chunk in (4, 25, 100):
        monkeypatch.setattr(backbone_initialisation, "_CHUNK", chunk)
        network.directions.middle.zero_()
        find_middle(network, open_vector_store(vectors, "cpu"))
        torch.testing.assert_close(
            network.directions.middle, torch.from_numpy(vectors.mean(axis=0)), rtol=1e-6, atol=1e-6
        )
