"""Our own steps, built as a run builds them."""

from collections.abc import Generator
from functools import partial
from itertools import cycle

import torch

from dcdc.assembly import build_training
from dcdc.bench.case import Case
from dcdc.bench.cuda import peak_bytes, start_peak
from dcdc.bench.rows import Measured, Trial
from dcdc.bench.timing import time_calls
from dcdc.data.order import epoch_batches
from dcdc.engine.observer import SilentObserver
from dcdc.engine.plan import HEADS
from dcdc.engine.terms import EpochTerms
from dcdc.engine.trainer import Trainer


def step_trials(case: Case, device: torch.device, seconds: float) -> Generator[Trial, None, None]:
    """One for each pass of an epoch that trains the cluster head too: heads in turn, or jointly."""
    start_peak(device)
    observer = _Notes()
    trainer = build_training(case.config, case.image_set, observer, None).trainer
    trainer.network.train()
    trainer.generator.manual_seed(case.config.train.seed)
    heads_phase = trainer.plan.phase(HEADS)
    for heads in heads_phase.passes(heads_phase.epochs):
        name = f"step, {' and '.join(head.replace('_', ' ') for head in heads)}"
        yield Trial(name, partial(_measure, case, trainer, heads, observer, device, seconds))


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
    case: Case,
    trainer: Trainer,
    heads: tuple[str, ...],
    observer: _Notes,
    device: torch.device,
    seconds: float,
) -> Measured:
    order = torch.Generator().manual_seed(case.config.train.seed)
    batches = epoch_batches(case.image_set.n_images, case.batch_size, order).to(device)
    if trainer.plan.phase(HEADS).n_neighbours:
        batches = torch.cat([batches, batches.flip(0)], dim=1)  # any partners cost the same
    ahead = cycle(batches)
    terms = EpochTerms()

    def step() -> None:
        terms.add(trainer.steps[HEADS](next(ahead), heads))

    timing = time_calls(step, device, seconds)
    return Measured(
        timing,
        images=case.batch_size,
        copies=case.n_copies,
        peak_gpu_bytes=peak_bytes(device),
        details={
            "heads": list(heads),
            "precision": case.config.train.precision,
            "notes": observer.notes.copy(),
            "warnings": observer.warnings.copy(),
        },
    )
