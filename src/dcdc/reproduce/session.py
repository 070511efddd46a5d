"""Runs trained one after the other: a failing one does not stop the rest, a deadline does."""

import gc
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcdc.assembly import resolve
from dcdc.config import DataConfig, RunConfig
from dcdc.data import ImageSet
from dcdc.engine.observer import Observer, PassingObserver
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.reproduce.outcome import filled_in, read_outcome
from dcdc.reproduce.runs import Run
from dcdc.run import read_config, run
from dcdc.run_folder import RunFolder
from dcdc.runtime.atomic_files import remove_leftovers

if TYPE_CHECKING:
    from torch import Tensor

Read = Callable[[RunConfig], ImageSet]
Watch = Callable[[], AbstractContextManager[Observer]]
TIME_OVER = "time is over"


@dataclass
class Ended:
    faults: dict[Path, str] = field(default_factory=dict)
    """By run folder."""
    stopped: str = ""
    """Name of the signal that stopped it, or TIME_OVER."""


@dataclass(frozen=True)
class Session:
    """What the faces bring: the reading of images, the watching, and what follows a run."""

    read: Read
    watch: Watch
    say: Callable[[str], None]
    """What is going on."""
    warn: Callable[[str], None]
    """What went wrong."""
    after: Callable[[RunFolder, ImageSet], Any] = lambda _folder, _images: None
    deadline: float | None = None
    """By time.monotonic()."""

    def carry_out(self, runs: Iterable[Run]) -> Ended:
        """Trains what is missing, goes on with what was begun."""
        ended = Ended()
        images = _LastRead(self.read)
        # Two rows may share a run.
        for planned in {each.folder: each for each in runs}.values():
            outcome = read_outcome(planned)
            if outcome.state == "done":
                continue
            if outcome.state == "other":
                ended.faults[planned.folder] = outcome.fault
                self.warn(f"left out: {outcome.fault}")
                continue
            if self._is_over():
                ended.stopped = TIME_OVER
                break
            self.say(f"{planned.folder}: {'going on' if outcome.state == 'begun' else 'training'}")
            try:
                self._train(planned, images, resume=outcome.state == "begun")
            except Interrupted as stopped:
                ended.stopped = TIME_OVER if self._is_over() else stopped.signal
                break
            except KeyboardInterrupt:  # while images were read, or a report drawn
                ended.stopped = "SIGINT"
                break
            except Exception as error:
                ended.faults[planned.folder] = self._tell(planned, error)
            _forget()
        return ended

    def _train(self, planned: Run, images: "_LastRead", *, resume: bool) -> None:
        config = planned.named()
        if resume:
            folder = RunFolder.open(planned.folder)
            config = filled_in(planned.config, read_config(folder))
            image_set = images(config)
        else:
            image_set = images(config)
            config = resolve(config, image_set)  # refuses before there is a folder
            if planned.folder.is_dir():
                remove_leftovers(planned.folder)
            folder = RunFolder.create(planned.folder)
        with self.watch() as observer:
            watcher = observer if self.deadline is None else _Deadline(observer, self._is_over)
            run(config, image_set, folder=folder, resume=resume, observer=watcher)
        self.after(folder, image_set)

    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _tell(self, planned: Run, error: Exception) -> str:
        fault = " ".join(str(error).split())
        if not isinstance(error, InputError | TrainingError | OSError):
            self.warn("".join(traceback.format_exception(error)))
            fault = f"{type(error).__name__}: {fault}"
        self.warn(f"{planned.folder} failed: {fault}")
        return fault


class _LastRead:
    """The images of the runs before serve the next one where they are the same."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.of: DataConfig | None = None
        self.image_set: ImageSet | None = None

    def __call__(self, config: RunConfig) -> ImageSet:
        if self.image_set is None or self.of != config.data:
            self.image_set = None  # two sets need not fit into memory
            self.image_set, self.of = self.read(config), config.data
        return self.image_set


class _Deadline(PassingObserver):
    """After the deadline, the wish that Ctrl-C would be."""

    def __init__(self, observer: Observer, is_over: Callable[[], bool]) -> None:
        super().__init__(observer)
        self.is_over = is_over
        self.has_asked = False

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        super().on_step(terms, n_images)
        if not self.has_asked and self.is_over():
            self.has_asked = True  # a second signal would act at once
            signal.raise_signal(signal.SIGINT)


def _forget() -> None:
    """Gives back what a run held: networks in cycles, and what was compiled for its shapes."""
    gc.collect()
    if "torch._dynamo" in sys.modules:
        import torch

        torch.compiler.reset()
