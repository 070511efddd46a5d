"""What each phase of a config minimises."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

from dcdc.config import LossConfig, RunConfig
from dcdc.copies_from_config import build_perturbed_copy
from dcdc.data import ImageSet
from dcdc.data.store import open_store
from dcdc.engine.held_out_loss import held_out_loss
from dcdc.engine.objectives import (
    Copy,
    DcdcObjective,
    Function,
    Gather,
    InstanceObjective,
    LossFunction,
    Objective,
    Passes,
    PredictionObjective,
    SelfLabelObjective,
    one_pass,
    two_passes,
)
from dcdc.engine.plan import INSTANCE, SELF_LABEL, Phase
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses import dcdc_loss, iic_loss


def build_objective(
    phase: Phase,
    config: RunConfig,
    model: TrainedModel,
    compiled: Callable[[Function], Function],
    gather: Gather,
) -> Objective:
    def applied(copy: Copy) -> Function:
        return copy.apply if copy.has_kernel(model.device) else compiled(copy.apply)

    if phase.kind == INSTANCE:
        perturbed = build_perturbed_copy(config, n_repeats=config.instance.copies)
        how = {"autocast": model.autocast, "applied": applied, "gather": gather}
        if config.instance.predicts:
            return PredictionObjective(perturbed, momentum=config.instance.momentum, **how)
        return InstanceObjective(perturbed, temperature=config.instance.temperature, **how)
    if phase.kind == SELF_LABEL:
        return SelfLabelObjective(
            model.original_copy,
            build_perturbed_copy(config, n_repeats=1),
            threshold=config.self_label.threshold,
            autocast=model.autocast,
            applied=applied,
            gather=gather,
        )
    return DcdcObjective(
        model.original_copy,
        build_perturbed_copy(config),
        loss=build_loss(config.loss),
        autocast=model.autocast,
        passes=_passes(config, model),
        partners=phase.n_neighbours > 0,
        applied=applied,
        compiled=compiled,
        gather=gather,
    )


def _passes(config: RunConfig, model: TrainedModel) -> Passes:
    chosen = config.train.passes
    if chosen == "auto":  # one pass has half as many exchanges between processes, too
        chosen = "one" if model.device.type == "cuda" or model.processes.joined else "two"
    return one_pass if chosen == "one" else two_passes


def build_loss(config: LossConfig) -> LossFunction:
    if config.kind == "iic":
        return iic_loss
    settings = asdict(config)
    del settings["kind"]
    return partial(dcdc_loss, **settings)


def held_out_loss_of(
    config: RunConfig, model: TrainedModel, image_set: ImageSet, seed: int
) -> float:
    """The cluster head's own loss under draws that follow from `seed` alone."""
    objective = DcdcObjective(
        model.original_copy,
        build_perturbed_copy(config),
        loss=build_loss(config.loss),
        autocast=model.autocast,
    )
    return held_out_loss(
        model.network,
        open_store(image_set.images, model.device),
        objective,
        batch_size=min(config.train.batch_size, image_set.n_images),
        seed=seed,
    )
