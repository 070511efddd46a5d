"""What an exported file says about itself, as plain strings: all that ONNX can hold."""

import json

from torch import nn

from dcdc.engine.trained_model import TrainedModel
from dcdc.runtime.version import own_version

FORMAT = 1


def metadata_of(model: TrainedModel) -> dict[str, str]:
    head = model.network.heads[model.network.answering_head]
    assert isinstance(head, nn.Linear)
    names = {str(cluster): name for cluster, name in sorted(model.names.items())}
    return {
        "dcdc": own_version(),
        "format": str(FORMAT),
        "size": str(model.size),
        "channels": str(model.network.in_channels),
        "n_clusters": str(head.out_features),
        "clusters": json.dumps(names, ensure_ascii=False),
    }
