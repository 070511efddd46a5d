"""The parts of a measuring session, one after the other; what fails is a row and stops nothing."""

import platform
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import torch

from dcdc.bench.perturbations import perturbation_trials
from dcdc.bench.steps import Case, step_trials
from dcdc.bench.timing import Row, Trial, release_memory
from dcdc.config import to_mapping
from dcdc.runtime.device import cpu_threads, describe_device
from dcdc.runtime.environment import available_cores, own_version

Trials = Generator[Trial, None, None]
OfPreset = Callable[[Case, torch.device, float], Trials]
"""What is measured of every preset: from a case, a device and the seconds."""
Alone = Callable[[torch.device, float], Trials]
"""What no preset changes."""

OF_PRESETS: Mapping[str, OfPreset] = {"steps": step_trials}
ALONE: Mapping[str, Alone] = {"perturbations": perturbation_trials}


@dataclass(frozen=True)
class Session:
    cases: Sequence[Case]
    parts: Sequence[str]
    """Names of those to measure, in any order."""
    device: torch.device
    seconds: float
    """A measurement takes about so long, after its warm-up."""
    of_presets: Mapping[str, OfPreset] = field(default_factory=lambda: OF_PRESETS)
    alone: Mapping[str, Alone] = field(default_factory=lambda: ALONE)

    @property
    def chosen(self) -> Iterator[tuple[str, Case | None, Callable[[], Trials]]]:
        """Presets first, with all that a step is held against measured close to it."""
        for case, (part, of_preset) in product(self.cases, self.of_presets.items()):
            if part in self.parts:
                yield part, case, partial(of_preset, case, self.device, self.seconds)
        for part, alone in self.alone.items():
            if part in self.parts:
                yield part, None, partial(alone, self.device, self.seconds)


def measure(session: Session, announce: Callable[[str], None]) -> Iterator[Row]:
    for part, case, trials in session.chosen:
        with cpu_threads(case.config.train.threads) if case else nullcontext():
            yield from _rows(part, case.preset if case else None, trials, announce)
        release_memory(session.device)


def _rows(
    part: str, preset: str | None, trials: Callable[[], Trials], announce: Callable[[str], None]
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


def record(session: Session, rows: Sequence[Row], *, complete: bool) -> dict[str, Any]:
    """Everything that was measured, and where, for a JSON file."""
    return {
        "device": describe_device(session.device),
        "cpu_cores": available_cores(),
        "dcdc": own_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seconds": session.seconds,
        "complete": complete,
        "configs": {case.preset: to_mapping(case.config) for case in session.cases},
        "rows": [row.to_dict() for row in rows],
    }
