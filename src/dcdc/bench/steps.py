"""The steps of every phase, built as a run builds them, on random images of a preset's size: time
does not depend on what an image shows."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch

from dcdc.bench.timing import Measured, Trial, peak_bytes, start_peak, time_calls
from dcdc.config import RunConfig, with_settings, with_values
from dcdc.data import ImageSet
from dcdc.data.image_set import numbered_names
from dcdc.engine.captured_step import CapturedStep
from dcdc.engine.observer import SilentObserver
from dcdc.engine.phase import Phase
from dcdc.engine.step import EagerStep, Step
from dcdc.engine.terms import EpochTerms
from dcdc.engine.trainer import Trainer
from dcdc.prepare.assembly import build_training
from dcdc.prepare.presets import preset
from dcdc.prepare.resolve import batch_sizes, resolve
from dcdc.prepare.suggestions import has_gpu

_MOST_IMAGES = 10_000
_MOST_ON_CPU = 1_000
"""Of which a phase may want the features before its first step."""
_MOST_BYTES = 64 * 2**20
_DIGITS_SIDE = 8
_BATCHES = 100  # that differ


@dataclass(frozen=True)
class Case:
    preset: str
    config: RunConfig
    """As resolved on the images."""
    image_set: ImageSet


def build_case(name: str, values: dict[str, Any], settings: Sequence[str]) -> Case:
    """A preset with `section.key=value` settings laid over it, and values by `section.key`, of
    which None leaves the preset's."""
    given = {key: value for key, value in values.items() if value is not None}
    config = with_settings(with_values(preset(name), given), settings)
    image_set = random_images(config)
    return Case(name, resolve(config, image_set), image_set)


def random_images(config: RunConfig) -> ImageSet:
    side = config.data.size or _DIGITS_SIDE
    if config.network.mean is not None:
        channels = len(config.network.mean)
    else:
        augment = config.augment
        channels = 3 if augment.saturation or augment.hue or augment.grey else 1
    most = _MOST_IMAGES if has_gpu(config.train.device) else _MOST_ON_CPU
    n_images = min(most, _MOST_BYTES // (side * side * channels))
    n_images = max(n_images, 2 * max(batch_sizes(config).values()))
    random = np.random.default_rng(config.train.seed)
    images = random.integers(0, 256, (n_images, side, side, channels), np.uint8)
    return ImageSet(images, numbered_names("random", n_images))


@dataclass(frozen=True)
class PhaseStep:
    """One pass of a phase's last epoch: what it trains, and on how much."""

    phase: Phase
    name: str
    heads: tuple[str, ...]
    step: Step
    batch_size: int
    n_rows: int
    """Indices that the step takes: the batch, and partners where the phase has them."""


def phase_steps(trainer: Trainer) -> Iterator[PhaseStep]:
    """The one place here that knows how a trainer keeps its phases."""
    plan = trainer.plan
    for phase, name, batch_size, step in zip(
        plan.phases, plan.names, plan.batch_sizes, trainer.steps, strict=True
    ):
        for heads in phase.passes(phase.epochs, plan.heads):
            yield PhaseStep(phase, name, heads, step, batch_size, batch_size * phase.index_rows())


def step_trials(case: Case, device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    trainer = build_training(case.config, case.image_set, _Notes(), None).trainer
    for one in phase_steps(trainer):
        yield Trial(step_name(one), partial(_measure, case, one, trainer, device, seconds))


def step_name(one: PhaseStep) -> str:
    heads = " and ".join(one.heads)
    return f"{one.name} step, {heads}".replace("_", " ")


class _Notes(SilentObserver):
    """Keeps what the engine says of how it runs: that a step could not be captured, say."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def _measure(
    case: Case, one: PhaseStep, trainer: Trainer, device: torch.device, seconds: float
) -> Measured:
    trainer.context.state.clear()
    trainer.context.made.clear()
    one.phase.begin(trainer.context)
    trainer.network.train()
    trainer.generator.manual_seed(case.config.train.seed)
    observer = trainer.observer
    assert isinstance(observer, _Notes)
    start_peak(device)
    order = torch.Generator().manual_seed(case.config.train.seed)
    # Which images meet in a batch, and which are partners, does not change its time.
    batches = torch.randint(case.image_set.n_images, (_BATCHES, one.n_rows), generator=order)
    batches = batches.to(device)
    n_copies = _count_copies(one.step, batches[0])
    ahead = cycle(batches)
    terms = EpochTerms()

    def step() -> None:
        terms.add(one.step(next(ahead), one.heads))

    timing = time_calls(step, device, seconds)
    return Measured(
        timing,
        images=one.batch_size,
        copies=n_copies,
        peak_gpu_bytes=peak_bytes(device),
        details={
            "phase": one.name,
            "heads": list(one.heads),
            "precision": case.config.train.precision,
            "notes": observer.notes.copy(),
            "warnings": observer.warnings.copy(),
        },
    )


def _count_copies(step: Step, indices: torch.Tensor) -> int:
    """That the step's objective makes of a batch."""
    eager = step.eager if isinstance(step, CapturedStep) else step
    assert isinstance(eager, EagerStep)
    images = eager.store.batch(indices)
    copies = eager.objective.copies(images, eager.objective.draw(images, eager.generator))
    return sum(map(len, copies))
