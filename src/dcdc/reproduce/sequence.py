"""Runs one after the other: a failing one does not stop the rest, a deadline does."""

import gc
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from dcdc.errors import InputError, Interrupted, TrainingError

TIME_OVER = "time is over"


class Planned(Protocol):
    @property
    def folder(self) -> Path: ...


class Standing(Protocol):
    @property
    def state(self) -> str:
        """done, begun, missing, or other: the folder holds something else."""

    @property
    def fault(self) -> str:
        """Why it is `other`."""


R = TypeVar("R", bound=Planned)


@dataclass
class Ended:
    faults: dict[Path, str] = field(default_factory=dict)
    """By run folder."""
    stopped: str = ""
    """Name of the signal that stopped it, or TIME_OVER."""


def carry_out_each(
    runs: Iterable[R],
    stand: Callable[[R], Standing],
    work: Callable[[R, bool], None],
    *,
    is_over: Callable[[], bool],
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> Ended:
    """`work` gets a run and whether it was begun before; runs that share a folder are one."""
    ended = Ended()
    for planned in {each.folder: each for each in runs}.values():
        standing = stand(planned)
        if standing.state == "done":
            continue
        if standing.state == "other":
            ended.faults[planned.folder] = standing.fault
            warn(f"left out: {standing.fault}")
            continue
        if is_over():
            ended.stopped = TIME_OVER
            break
        say(f"{planned.folder}: {'going on' if standing.state == 'begun' else 'training'}")
        try:
            work(planned, standing.state == "begun")
        except Interrupted as stopped:
            ended.stopped = TIME_OVER if is_over() else stopped.signal
            break
        except KeyboardInterrupt:  # while images were read, or a report drawn
            ended.stopped = "SIGINT"
            break
        except Exception as error:
            ended.faults[planned.folder] = _tell(planned, error, warn)
        _forget()
    return ended


def _tell(planned: Planned, error: Exception, warn: Callable[[str], None]) -> str:
    fault = " ".join(str(error).split())
    if not isinstance(error, InputError | TrainingError | OSError):
        warn("".join(traceback.format_exception(error)))
        fault = f"{type(error).__name__}: {fault}"
    warn(f"{planned.folder} failed: {fault}")
    return fault


def _forget() -> None:
    """Gives back what a run held: networks in cycles, and what was compiled for its shapes."""
    gc.collect()
    if "torch._dynamo" in sys.modules:
        import torch

        torch.compiler.reset()
