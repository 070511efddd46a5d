"""The steps of every phase, built as a run builds them."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import torch

from dcdc.bench.case import Case
from dcdc.bench.cuda import peak_bytes, start_peak
from dcdc.bench.rows import Measured, Trial
from dcdc.bench.timing import time_calls
from dcdc.engine.captured_step import CapturedStep
from dcdc.engine.observer import SilentObserver
from dcdc.engine.step import EagerStep, Step
from dcdc.engine.terms import EpochTerms
from dcdc.engine.trainer import Trainer
from dcdc.prepare.assembly import build_training

_BATCHES = 100  # that differ


@dataclass(frozen=True)
class PhaseStep:
    """One pass of a phase's last epoch: what it trains, and on how much."""

    phase: str
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
            yield PhaseStep(name, heads, step, batch_size, batch_size * phase.index_rows())


def step_trials(case: Case, device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    observer = _Notes()
    trainer = build_training(case.config, case.image_set, observer, None).trainer
    trainer.network.train()
    for one in phase_steps(trainer):
        trainer.generator.manual_seed(case.config.train.seed)
        heads = " and ".join(one.heads)
        name = f"{one.phase} step, {heads}".replace("_", " ")
        yield Trial(name, partial(_measure, case, one, observer, device, seconds))


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
    case: Case, one: PhaseStep, observer: _Notes, device: torch.device, seconds: float
) -> Measured:
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
            "phase": one.phase,
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
