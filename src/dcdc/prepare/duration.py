"""About how long a run takes on a CPU, from what a few of its images take now.

On a GPU kernels are chosen, captured and compiled first, so that a few images tell nothing.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from dcdc.augment import to_float
from dcdc.config import RunConfig
from dcdc.data import Data, ImageSet, VectorSet
from dcdc.engine import patch_dictionary
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.phase import Phase
from dcdc.engine.plan import Plan
from dcdc.engine.trained_model import TrainedModel
from dcdc.networks.patches import PatchBackbone
from dcdc.prepare.assembly import build_model, build_plan, load_pretrained
from dcdc.prepare.resolve import has_stored_features, perturbed_copy
from dcdc.prepare.stored_features import are_kept, raw_features
from dcdc.runtime.device import cpu_threads, pick_device

_LOOKED_AT, _MOST_LOOKED_AT, _PIXELS = 16, 256, 2**16
"""Images, and more of small ones, of which 16 take as long as one: each way of looking at them
takes a tenth of a second."""
_K_MEANS_OF_PATCHES = 5.0
_STEP_OF_HEADS = 0.015
"""Seconds, of heads over stored features. Both on one core of a server of 2024."""
_BACKWARD = 2
"""Times a forward pass, in which a backbone's weights are trained."""


class Duration(NamedTuple):
    """In seconds."""

    first: float
    """Before the first epoch: features that are computed once, or a dictionary of patches."""
    training: float

    @property
    def total(self) -> float:
        return self.first + self.training


def expected_duration(
    config: RunConfig, data: Data, first: FirstEpochs | None = None
) -> Duration | None:
    """Of a resolved config, after the epochs that are done already; None on a GPU."""
    if pick_device(config.train.device).type != "cpu":
        return None
    with cpu_threads(config.train.threads):
        model = build_model(config)
        plan = build_plan(config, data, model.network)
        if isinstance(data, VectorSet):
            return Duration(0, plan.steps_after(0) * _STEP_OF_HEADS)
        if has_stored_features(config.network):
            return Duration(
                _seconds_of_features(config, model, data), plan.steps_after(0) * _STEP_OF_HEADS
            )
        return _of_images(config, model, data, plan, first)


def _seconds_of_features(config: RunConfig, model: TrainedModel, images: ImageSet) -> float:
    load_pretrained(config, model.network)
    if are_kept(model, images):
        return 0
    few = np.array(images.images[:_LOOKED_AT])
    return images.n_images * _seconds(lambda: raw_features(model, few)) / len(few)


@torch.no_grad()
def _of_images(
    config: RunConfig, model: TrainedModel, images: ImageSet, plan: Plan, first: FirstEpochs | None
) -> Duration:
    network, perturbed = model.network.eval(), perturbed_copy(config, 1)
    n_looked_at = max(_LOOKED_AT, min(_MOST_LOOKED_AT, _PIXELS // images.side**2))
    rows = np.array(images.images[:n_looked_at])
    few = torch.from_numpy(rows).permute(0, 3, 1, 2)
    draws = torch.Generator()

    def see_copies() -> None:
        network.backbone(network.preprocess(perturbed(to_float(few), generator=draws)))

    of_copy = _seconds(see_copies) / len(few)
    of_image = _seconds(lambda: model.look_at_rows(rows)) / len(few)
    n_done = 0 if first is None else first.epoch
    n_answers = (plan.epochs - n_done) // plan.evaluate_every + 1
    training = n_answers * images.n_images * of_image
    is_found = isinstance(network.backbone, PatchBackbone)
    for epoch in range(n_done + 1, plan.epochs + 1):
        n_seen = plan.steps(epoch) * plan.batch_size(epoch) * _copies_of(plan.at(epoch).phase)
        training += n_seen * of_copy * (1 if is_found else 1 + _BACKWARD)
    if not is_found or first is not None:
        return Duration(0, training)
    n_first = min(images.n_images, patch_dictionary.MOST_IMAGES) * patch_dictionary.N_COPIES
    return Duration(_K_MEANS_OF_PATCHES + n_first * of_copy, training)


def _copies_of(phase: Phase) -> int:
    """The original one and the perturbed ones."""
    return 1 + int(getattr(phase, "n_repeats", 1))


def _seconds(work: Callable[[], object]) -> float:
    """The quickest of three times: the first one also wakes threads."""
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)
