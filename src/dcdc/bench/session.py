"""The parts of a measuring session, one after the other; what fails is a row and stops nothing."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch

from dcdc.bench.augmentation import augment_trials
from dcdc.bench.case import Case
from dcdc.bench.cuda import release_memory
from dcdc.bench.floors import floor_trials
from dcdc.bench.reference import reference_trials
from dcdc.bench.rows import Row, Trial
from dcdc.bench.steps import step_trials
from dcdc.bench.stores import store_trials
from dcdc.runtime.device import cpu_threads

_OF_A_PRESET = ("steps", "reference", "floors")


@dataclass(frozen=True)
class Session:
    cases: Sequence[Case]
    parts: Sequence[str]
    device: torch.device
    seconds: float
    """A measurement takes about so long, after its warm-up."""
    n_workers: int
    """Of the reference's loader."""


def measure(session: Session, announce: Callable[[str], None]) -> Iterator[Row]:
    """Presets first, with all that a step is held against measured close to it."""
    wanted = [part for part in _OF_A_PRESET if part in session.parts]
    for case, part in product(session.cases, wanted):
        with cpu_threads(case.config.train.threads):
            yield from _rows(part, case.preset, _trials_of(part, case, session), announce)
        release_memory(session.device)
    for part in session.parts:
        if part not in _OF_A_PRESET:
            alone = augment_trials if part == "augment" else store_trials
            trials = partial(alone, session.device, session.seconds)
            yield from _rows(part, None, trials, announce)
            release_memory(session.device)


def _trials_of(
    part: str, case: Case, session: Session
) -> Callable[[], Generator[Trial, None, None]]:
    device, seconds = session.device, session.seconds
    if part == "steps":
        return partial(step_trials, case, device, seconds)
    if part == "reference":
        return partial(reference_trials, case, device, seconds, session.n_workers)
    return partial(floor_trials, case, device, seconds)


def _rows(
    part: str,
    preset: str | None,
    trials: Callable[[], Generator[Trial, None, None]],
    announce: Callable[[str], None],
) -> Iterator[Row]:
    try:
        with closing(trials()) as each:  # a file or workers may be open in between
            for trial in each:
                announce(f"{preset or part}: {trial.name}")
                yield _row(part, preset, trial)
    except Exception as error:
        yield Row(part, preset, f"the rest of {part}", not_possible=_reason(error))


def _row(part: str, preset: str | None, trial: Trial) -> Row:
    try:
        return Row(part, preset, trial.name, trial.measure())
    except Exception as error:
        return Row(part, preset, trial.name, not_possible=_reason(error))


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
