"""Everything between an image's bytes and its cluster as one plain module, fit to be traced.

Shapes: N images, S pixels a side, C channels, K clusters, D features.
"""

import json
from copy import deepcopy

import torch
from torch import Tensor, nn

from dcdc.engine.trained_model import TrainedModel
from dcdc.runtime.environment import own_version

INPUT = "images"
OUTPUTS = ("probabilities", "assignment", "features")
FORMAT = 1  # of the metadata


class ExportedNetwork(nn.Module):
    """uint8 images, N x S x S x C, to probabilities N x K, assignment N and features N x D.

    A copy of the model's weights in float32 on the CPU, without the heads that only train.
    """

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        network = deepcopy(model.network).cpu().float()
        network.lay_out(torch.contiguous_format)
        self.size = model.size
        self.channels = network.in_channels
        self.centre: Tensor | None
        self.register_buffer("centre", model.original_copy.centre_matrix())
        self.normalise = network.normalise
        self.sobel = network.sobel
        self.backbone = network.backbone
        self.head = network.heads[network.answering_head]
        self.eval().requires_grad_(False)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        x = images.permute(0, 3, 1, 2).to(torch.float32) / 255
        if self.centre is not None:
            x = self.centre @ x @ self.centre.T
        x = self.normalise(x)
        if self.sobel is not None:
            x = self.sobel(x)
        features = self.backbone(x.contiguous())
        probabilities = torch.softmax(self.head(features), dim=1)
        answers = (probabilities, probabilities.argmax(dim=1), features)
        return dict(zip(OUTPUTS, answers, strict=True))


def trace(network: ExportedNetwork) -> torch.export.ExportedProgram:
    """The graph for any number of images."""
    example = torch.zeros(2, network.size, network.size, network.channels, dtype=torch.uint8)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (example,), dynamic_shapes=({0: batch},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # where this machine keeps its files
    return program


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
