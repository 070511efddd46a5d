"""What the cost model needs of a recipe: measured here on a GPU, or else the figures of an H200."""

from dataclasses import replace

import torch

from dcdc.assembly import build_network
from dcdc.bench.case import Case
from dcdc.bench.scale_model import H200, Recipe, StepTime
from dcdc.bench.steps import step_trials
from dcdc.networks import Convolution, CopyGroupNorm
from dcdc.runtime.device import describe_device

RECORDED = "cifar10-paper"
"""The recipe whose step times are kept for machines without a GPU."""
_LARGER = 4


def recipe_of(case: Case) -> Recipe:
    config = case.config
    network = build_network(config)
    layers = list(network.modules())
    convolved = sum(layer.weight.numel() for layer in layers if isinstance(layer, Convolution))
    heads = [config.n_clusters or 0, config.network.over_clusters]
    return Recipe(
        half_gradients=convolved,
        full_gradients=network.n_parameters - convolved,
        norm_channels=tuple(
            layer.num_features for layer in layers if isinstance(layer, CopyGroupNorm)
        ),
        n_repeats=config.train.n_repeats,
        n_clusters=max(heads),
        n_heads=sum(k > 0 for k in heads),
        image_bytes=case.image_set.images[0].nbytes,
    )


def step_time(case: Case, device: torch.device, seconds: float) -> StepTime:
    """Measured at the recipe's batch and at four times as many; the last head's step."""
    if device.type != "cuda":
        return H200
    sizes = (case.batch_size, _LARGER * case.batch_size)
    ms = []
    for size in sizes:
        config = replace(case.config, train=replace(case.config.train, batch_size=size))
        *_, trial = step_trials(replace(case, config=config), device, seconds)
        ms.append(trial.measure().timing.ms)
    return StepTime(sizes, (ms[0], ms[1]), f"measured here on {describe_device(device)}")
