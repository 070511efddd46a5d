"""Models with random weights and statistics: agreement does not need quality."""

import numpy as np
import torch

from dcdc.config import AugmentConfig, DataConfig, NetworkConfig, RunConfig, TrainConfig
from dcdc.export.check import random_images
from dcdc.phases.contrast import Contrast
from dcdc.phases.heads import Heads
from dcdc.prepare.assembly import build_model


def random_model(backbone="small", size=8, channels=1, sobel=False, resize_to=0, n_clusters=5):
    config = RunConfig(
        n_clusters=n_clusters,
        data=DataConfig(source="random", size=size),
        network=NetworkConfig(
            backbone=backbone,
            sobel=sobel,
            over_clusters=9,
            mean=(0.4, 0.5, 0.6)[:channels],
            std=(0.2, 0.3, 0.25)[:channels],
        ),
        augment=AugmentConfig(resize_to=resize_to),
        phases=(Contrast(epochs=1), Heads()),
        train=TrainConfig(device="cpu", threads=1),
    )
    # with a projection, which no export needs
    model = build_model(config, for_training=True)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in model.network.state_dict().items():
            kind = name.rpartition(".")[2]
            if kind == "running_var":
                tensor.uniform_(0.5, 2, generator=generator)
            elif kind == "running_mean" or (kind == "bias" and "heads" not in name):
                tensor.normal_(0, 0.1, generator=generator)
        _spread(model)
    return model


def _spread(model):
    """A head that tells images apart: where all get one answer, any export would be right."""
    head = model.network.heads["cluster_head"]
    shape = (model.size, model.network.in_channels)
    images = random_images(head.out_features, *shape, np.random.default_rng(1))
    features = torch.from_numpy(model.transform(images))
    centred = features - features.mean(0)
    head.weight.copy_(3 * centred / centred.square().sum(1, keepdim=True))
    head.bias.copy_(-head.weight @ features.mean(0))
