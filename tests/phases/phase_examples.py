"""A phase by itself: its context, and the copies that its objective draws."""

from contextlib import nullcontext
from dataclasses import replace

import torch

from dcdc.config import with_values
from dcdc.engine.objectives import StepTools
from dcdc.engine.observer import SilentObserver
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve

TOOLS = StepTools(nullcontext)
PERTURBED = {"augment.resize_to": 10, "augment.noise": 0.1, "augment.flip": 0.5}


def context_of(config, image_set, *phases):
    """Of a training in `phases`, before its first step; its network has their parts."""
    config = with_values(replace(config, phases=phases), PERTURBED)
    return build_training(
        resolve(config, image_set), image_set, SilentObserver(), None
    ).trainer.context


def some_images(context, n_images=12):
    return context.store.batch(torch.arange(n_images))


def copies_of(objective, images, seed=3):
    return objective.copies(images, objective.draw(images, torch.Generator().manual_seed(seed)))


def moved(network) -> set[str]:
    """Names of what got a gradient that is not zero."""
    return {
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().sum() > 0
    }
