"""The runs of a table, trained here one after the other."""

import signal
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dcdc.config import DataConfig, RunConfig
from dcdc.config_for_images import resolve, with_label_column
from dcdc.data import ImageSet, label_columns
from dcdc.engine.observer import Observer, PassingObserver
from dcdc.errors import InputError
from dcdc.reproduce.outcome import filled_in, read_outcome
from dcdc.reproduce.runs import Run
from dcdc.reproduce.sequence import Ended, carry_out_each
from dcdc.run import read_config, run
from dcdc.run_folder import RunFolder
from dcdc.runtime.atomic_files import remove_leftovers

if TYPE_CHECKING:
    from torch import Tensor

Read = Callable[[RunConfig], ImageSet]
Watch = Callable[[], AbstractContextManager[Observer]]


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
        images = _LastRead(self.read)
        return carry_out_each(
            runs,
            read_outcome,
            lambda planned, begun: self._train(planned, images, resume=begun),
            is_over=self._is_over,
            say=self.say,
            warn=self.warn,
        )

    def _train(self, planned: Run, images: "_LastRead", *, resume: bool) -> None:
        config = planned.named()
        if resume:
            folder = RunFolder.open(planned.folder)
            config = filled_in(planned.config, read_config(folder))
            image_set = images(config)
        else:
            config = with_label_column(config)
            image_set = images(config)
            _require_classes(config.data.source, image_set)
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


def _require_classes(source: str, image_set: ImageSet) -> None:
    """A table is of scores: what has none must not show after the training."""
    if image_set.targets is None:
        columns = label_columns(source)
        how = f"--set data.target={' or '.join(columns)}" if columns else "--data NAME=SOURCE"
        raise InputError(f"{source} has no classes to score against: name what has by {how}")


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
