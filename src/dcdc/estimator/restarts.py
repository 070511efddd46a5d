"""Trainings from several seeds, and the choice among them without labels.

Shapes: N images, K clusters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from torch import Tensor

from dcdc.config import RunConfig, with_values
from dcdc.data import Data
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.trained_model import TrainedModel
from dcdc.errors import InputError, Interrupted
from dcdc.estimator.settings import make_known, restart_seed
from dcdc.estimator.watching import watching
from dcdc.estimator.words import in_python_words
from dcdc.metrics import adjusted_rand_index
from dcdc.prepare.assembly import build_model, build_training, held_out_loss_of
from dcdc.prepare.resolve import resolve
from dcdc.run import RunResult, run
from dcdc.runtime.device import cpu_threads, is_available, pick_device

_DRAW = 0
"""The seed of the criterion's own perturbations: the same ones for every restart."""


@dataclass(frozen=True)
class Fitted:
    """What a training leaves, on the CPU: it is sent between processes and into files."""

    config: RunConfig
    """As resolved on the images."""
    weights: dict[str, Tensor]
    probabilities: NDArray[np.float32]
    """N x K"""
    history: list[dict[str, Any]]
    metrics: dict[str, Any]
    said: NDArray[np.int32] | None = None
    """N: what people settled, as dcdc.engine.assignment has it"""
    held_out_loss: float = float("nan")
    outside: NDArray[np.bool_] | None = None
    """N: images of no cluster, where such are looked for."""
    reference: NDArray[np.float16] | None = None
    """Features that new images are then compared with."""
    stopped_by: str | None = None
    """The signal that ended this training early, or the one after it."""

    @property
    def was_cut_short(self) -> bool:
        return len(self.history) < self.config.epochs


def train(
    config: RunConfig,
    image_set: Data,
    *,
    number: int = 0,
    n_init: int = 1,
    weights: Mapping[str, Tensor] | None = None,
    first: FirstEpochs | None = None,
    verbose: int | None = 0,
) -> Fitted:
    """Restart `number` of `n_init`, whose `first` epochs may be done; raises Interrupted before an
    epoch is done."""
    seed = restart_seed(config.train.seed, number)
    config = replace(config, train=replace(config.train, seed=seed))
    title = "DCDC" if n_init == 1 else f"DCDC {number + 1}/{n_init}"
    with watching(verbose, title) as observer, in_python_words():
        result = run(
            config, image_set, observer=observer, weights=weights, first=first, keep_finished=True
        )
    loss = float("nan")
    if n_init > 1:
        with cpu_threads(config.train.threads):
            loss = held_out_loss_of(result.config, result.model, image_set, _DRAW)
    return fitted_of(result, loss)


def fitted_of(result: RunResult, held_out_loss: float = float("nan")) -> Fitted:
    return Fitted(
        config=result.config,
        weights=weights_of(result.model),
        probabilities=result.assigned.probabilities,
        history=result.history,
        metrics=result.metrics,
        said=result.assigned.said,
        held_out_loss=held_out_loss,
        outside=result.assigned.outside,
        reference=result.model.training_features(),
        stopped_by=result.stopped_by,
    )


def train_all(
    config: RunConfig,
    image_set: Data,
    *,
    n_init: int,
    n_jobs: int | None,
    verbose: int | None,
    backbone: Any = None,
    first: FirstEpochs | None = None,
) -> list[Fitted]:
    """One after the other, or on a CPU in processes, to which a module as `backbone` is sent;
    Ctrl-C leaves those that are finished. `first` are epochs of the first of them.

    Phases of features alone are trained once: the heads then start from several seeds on the same
    features."""
    n_shared = _epochs_of_features(config)
    if n_init > 1 and n_shared and first is None:
        first = _features_once(config, image_set, n_shared, verbose)
    how: list[dict[str, Any]] = [
        {
            "number": number,
            "n_init": n_init,
            "first": first if number == 0 or n_shared else None,
            "verbose": verbose,
        }
        for number in range(n_init)
    ]
    if n_jobs not in (None, 1) and n_init > 1 and pick_device(config.train.device).type == "cpu":
        # A copy of the images goes to every process.
        jobs = (delayed(_train_elsewhere)(backbone, config, image_set, **each) for each in how)
        return list(Parallel(n_jobs=n_jobs)(jobs))
    found: list[Fitted] = []
    for each in how:
        try:
            fitted = train(config, image_set, **each)
        except Interrupted as stopped:
            if not found or stopped.signal != "SIGINT":
                raise
            found[-1] = replace(found[-1], stopped_by=stopped.signal)
            return found
        if fitted.stopped_by and found:  # one that is cut short is no match for the others
            found[-1] = replace(found[-1], stopped_by=fitted.stopped_by)
            return found
        found.append(fitted)
        if fitted.stopped_by:
            return found
    return found


def _epochs_of_features(config: RunConfig) -> int:
    """Of the phases before the first that trains a head."""
    phases = config.active_phases.values()
    first_head = next((i for i, phase in enumerate(phases) if phase.is_scored), 0)
    return sum(phase.epochs for phase in list(phases)[:first_head])


def _features_once(
    config: RunConfig, image_set: Data, n_epochs: int, verbose: int | None
) -> FirstEpochs:
    with watching(verbose, "DCDC, features") as observer, in_python_words():
        config = resolve(config, image_set)
        with cpu_threads(config.train.threads):
            trainer = build_training(config, image_set, observer, None).trainer
            trainer.train(to=n_epochs)
            return trainer.first_epochs()


def _train_elsewhere(backbone: Any, config: RunConfig, image_set: Data, **how: Any) -> Fitted:
    make_known(backbone, config.network.backbone)
    return train(config, image_set, **how)


def _by_loss(found: Sequence[Fitted]) -> list[float]:
    return [-fitted.held_out_loss for fitted in found]


def _by_confidence(found: Sequence[Fitted]) -> list[float]:
    return [float(fitted.probabilities.max(axis=1).mean()) for fitted in found]


def _by_agreement(found: Sequence[Fitted]) -> list[float]:
    """The mean adjusted Rand index with the others."""
    labels = [fitted.probabilities.argmax(axis=1) for fitted in found]
    return [
        float(np.mean([adjusted_rand_index(one, other) for other in labels if other is not one]))
        for one in labels
    ]


CRITERIA: dict[str, Callable[[Sequence[Fitted]], list[float]]] = {
    "loss": _by_loss,
    "agreement": _by_agreement,
    "confidence": _by_confidence,
}
"""By name: a number for each restart, higher is better."""


def check_criterion(name: str) -> None:
    if name not in CRITERIA:
        raise InputError(f"n_init_criterion={name!r} is not one of {', '.join(CRITERIA)}")


def criterion_of(found: Sequence[Fitted], criterion: str) -> NDArray[np.float64]:
    """One number for each of at least two; the first of the best is chosen."""
    return np.array(CRITERIA[criterion](found))


def weights_of(model: TrainedModel) -> dict[str, Tensor]:
    return {name: t.detach().cpu().clone() for name, t in model.network.state_dict().items()}


def model_from(
    config: RunConfig,
    weights: Mapping[str, Tensor],
    reference: NDArray[np.float16] | None = None,
) -> TrainedModel:
    """On the config's device, or where that is missing on what there is. `reference`: features
    that new images are compared with."""
    device = config.train.device if is_available(config.train.device) else "auto"
    here = {"train.device": device}
    if pick_device(device).type != "cuda":
        here["train.precision"] = "auto"  # of a GPU's bfloat16
    model = build_model(with_values(config, here))
    model.network.load_state_dict(dict(weights))
    if config.network.frozen:
        model.network.freeze_backbone()
    if reference is not None:
        model.training_features = lambda: reference
    return model
