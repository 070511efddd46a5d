"""Runs one after the other: a failing one does not stop the rest, a deadline does."""

import gc
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dcdc.errors import PLAIN, InputError, Interrupted, TrainingError, Words, out_of_means
from dcdc.experiments.rows import Run

TIME_OVER = "time is over"
R = TypeVar("R", bound=Run)


@dataclass
class Ended:
    faults: dict[Path, str] = field(default_factory=dict)
    """By run folder."""
    stopped: str = ""
    """Name of the signal that stopped it, or TIME_OVER."""


def n_left(runs: Iterable[Run]) -> int:
    """How many `carry_out` would work on."""
    by_folder = {run.folder: run for run in runs}.values()
    return sum(run.standing().state in ("begun", "missing") for run in by_folder)


def carry_out(
    runs: Iterable[R],
    work: Callable[[R, bool], None],
    *,
    is_over: Callable[[], bool],
    say: Callable[[str], None],
    warn: Callable[[str], None],
    words: Words = PLAIN,
) -> Ended:
    """`work` gets a run and whether it was begun before; runs that share a folder are one.

    `say` tells what is going on, `warn` what went wrong, with parameters as `words` calls them.
    """
    ended = Ended()
    for run in {each.folder: each for each in runs}.values():
        standing = run.standing()
        if standing.state == "done":
            continue
        if standing.fault is not None:
            ended.faults[run.folder] = standing.fault.told(words)
            warn(f"left out: {ended.faults[run.folder]}")
            continue
        if is_over():
            ended.stopped = TIME_OVER
            break
        say(f"{run.folder}: {'going on' if standing.state == 'begun' else 'training'}")
        try:
            work(run, standing.state == "begun")
        except Interrupted as stopped:
            ended.stopped = TIME_OVER if is_over() else stopped.signal
            break
        except KeyboardInterrupt:  # while images were read, or a report drawn
            ended.stopped = "SIGINT"
            break
        except Exception as error:
            ended.faults[run.folder] = _tell(run, error, warn, words)
        _free_memory()
    return ended


def _tell(run: Run, error: Exception, warn: Callable[[str], None], words: Words) -> str:
    error = out_of_means(error) or error
    said = error.told(words) if isinstance(error, InputError | TrainingError) else str(error)
    fault = " ".join(said.split())
    if not isinstance(error, InputError | TrainingError | OSError):
        warn("".join(traceback.format_exception(error)))
        fault = f"{type(error).__name__}: {fault}"
    warn(f"{run.folder} failed: {fault}")
    return fault


def _free_memory() -> None:
    """Of networks in reference cycles, and of what was compiled for a run's shapes."""
    gc.collect()
    if "torch._dynamo" in sys.modules:
        import torch

        torch.compiler.reset()
