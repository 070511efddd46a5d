"""Of several cluster heads, the one that answers is the one that is exported."""

import numpy as np
import pytest
import torch

from dcdc.config import with_values
from dcdc.export.exported_network import ExportedNetwork, metadata_of
from dcdc.networks import CLUSTER_HEAD
from dcdc.prepare.assembly import build_model
from dcdc.prepare.resolve import resolve


@pytest.mark.parametrize("number", [1, 3])
def test_the_answering_head_is_exported(tiny_config, tiny_set, number):
    config = resolve(with_values(tiny_config, {"network.sub_heads": 3}), tiny_set)
    model = build_model(config)
    model.network.answer_by(f"{CLUSTER_HEAD}_{number}")
    exported = ExportedNetwork(model)(torch.tensor(tiny_set.images))
    np.testing.assert_allclose(
        exported["probabilities"].numpy(), model.assign(tiny_set).probabilities, rtol=1e-4
    )
    assert metadata_of(model)["n_clusters"] == "3"
