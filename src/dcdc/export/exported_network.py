"""Everything between an image's bytes and its cluster as one plain module, fit to be traced.

Shapes: N images, H x W pixels, S pixels a side that the run has, C channels, T pixels a side that
the backbone is given, K clusters, D features.
"""

import json
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError, first_line
from dcdc.export.resizing import squared
from dcdc.metrics.provenance import mark
from dcdc.runtime.environment import own_version

IMAGES, VECTORS = "images", "vectors"  # what the input is called
OUTPUTS = ("probabilities", "assignment", "features")
FORMAT = 1  # of the metadata


class ExportedNetwork(nn.Module):
    """uint8 images of any size, N x H x W x C, or of a model of feature vectors float32 numbers,
    N x D, to probabilities N x K, assignment N and features N x D.

    A copy of the model's weights in float32 on the CPU, without the heads that only train.
    """

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        network = deepcopy(model.network).cpu().float()
        network.lay_out(torch.contiguous_format)
        self.takes_vectors = model.takes_vectors
        self.channels = network.in_channels
        self.centre: Tensor | None
        self.resize: Tensor | None
        centre, resize = None, None
        if not model.takes_vectors:
            self.size = model.size
            centre = model.original_copy.centre_matrix()
            resize = _resize_matrix(model.size, network.input_size)
        self.register_buffer("centre", centre)
        self.register_buffer("resize", resize)
        self.normalise = network.normalise
        self.sobel = network.sobel
        self.backbone = network.backbone
        self.directions = network.directions
        self.head = network.heads[network.answering_head]
        self.eval().requires_grad_(False)

    def forward(self, given: Tensor) -> dict[str, Tensor]:
        features = given if self.takes_vectors else self._features(given)
        if self.directions is not None:
            features = self.directions(features)
        probabilities = torch.softmax(self.head(features), dim=1)
        answers = (probabilities, probabilities.argmax(dim=1), features)
        return dict(zip(OUTPUTS, answers, strict=True))

    def _features(self, images: Tensor) -> Tensor:
        """The backbone's own."""
        x = squared(images.permute(0, 3, 1, 2).to(torch.float32), self.size) / 255
        if self.centre is not None:
            x = self.centre @ x @ self.centre.T
        if self.resize is not None:
            x = (self.resize @ x @ self.resize.T).clamp(0, 1)
        x = self.normalise(x)
        if self.sobel is not None:
            x = self.sobel(x)
        features: Tensor = self.backbone(x.contiguous())
        return features


def _resize_matrix(side: int, given_side: int | None) -> Tensor | None:
    """T x S: what `resized` does to the rows of an image, and to its columns; None: nothing."""
    if given_side is None or given_side == side:
        return None
    return F.interpolate(
        torch.eye(side)[None, None], (given_side, side), mode="bicubic", antialias=True
    )[0, 0]


def input_name(model: TrainedModel) -> str:
    return VECTORS if model.takes_vectors else IMAGES


def free_axes(network: ExportedNetwork) -> dict[int, str]:
    """Of the input: those that may have any length, by name."""
    return {0: "batch"} if network.takes_vectors else {0: "batch", 1: "height", 2: "width"}


def trace(network: ExportedNetwork, backbone: str) -> torch.export.ExportedProgram:
    """The graph for any number of images of any size; `backbone` is its name, for messages."""
    if network.takes_vectors:
        example = torch.zeros(2, network.channels)
    else:
        shape = (2, network.size + 3, network.size + 5, network.channels)
        example = torch.zeros(shape, dtype=torch.uint8)
    free = {axis: torch.export.Dim(name, min=1) for axis, name in free_axes(network).items()}
    try:
        program = torch.export.export(network, (example,), dynamic_shapes=(free,))
    except Exception as error:
        raise InputError(
            f"the backbone {backbone} cannot be traced, so the model cannot be exported: "
            f"{first_line(error)}"
        ) from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # where this machine keeps its files
    return program


def metadata_of(model: TrainedModel) -> dict[str, str]:
    names = {str(cluster): name for cluster, name in sorted(model.names.items())}
    if model.takes_vectors:
        shape = {"n_features": str(model.network.n_features)}
    else:
        shape = {"size": str(model.size), "channels": str(model.network.in_channels)}
    backbone = (model.metrics or {}).get("backbone")
    marked = mark(backbone)
    return {
        "dcdc": own_version(),
        "format": str(FORMAT),
        **shape,
        "n_clusters": str(model.n_clusters),
        "clusters": json.dumps(names, ensure_ascii=False),
        **({} if marked is None else {"backbone": json.dumps(backbone), "weights": marked}),
    }
