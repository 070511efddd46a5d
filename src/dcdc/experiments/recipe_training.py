"""A run of a preset, trained in this process."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dcdc.config import DataConfig
from dcdc.data import Data, label_columns
from dcdc.engine.observer import Observer, PassingObserver
from dcdc.errors import InputError
from dcdc.experiments.recipe_runs import RecipeRun, filled_in
from dcdc.methods.by_run import begin_or_go_on
from dcdc.prepare.overrides import Overrides
from dcdc.prepare.prepare_run import prepare_run
from dcdc.run import read_config, run
from dcdc.run_folder import RunFolder

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Training:
    """What the command line brings: the reading of images, the progress, and what follows a run."""

    read: Callable[[DataConfig], Data]
    watch: Callable[[], AbstractContextManager[Observer]]
    is_over: Callable[[], bool]
    after: Callable[[RunFolder, Data], Any] = lambda _folder, _images: None
    _last: tuple[DataConfig, Data] | None = field(default=None, init=False)

    def work(self, planned: RecipeRun, begun: bool) -> None:
        """Trains it, or goes on with what was begun; returns when it is done."""
        with RunFolder(planned.folder).writing():
            self._work(planned, begun)

    def _work(self, planned: RecipeRun, begun: bool) -> None:
        if begun:
            folder = RunFolder.open(planned.folder)
            config = filled_in(planned.config, read_config(folder))
            image_set = self._images(config.data)
        else:
            asked = planned.named()
            prepared = prepare_run(
                asked.data.source, Overrides(preset=asked), read=self._scored_images
            )  # refuses before there is a folder
            config, image_set = prepared.config, prepared.images
            folder, _ = begin_or_go_on(planned.folder)
        with self.watch() as observer:
            watcher = _Deadline(observer, self.is_over)
            run(config, image_set, folder=folder, resume=begun, observer=watcher)
        self.after(folder, image_set)

    def _images(self, data: DataConfig) -> Data:
        """Those of the run before, where they are the same."""
        if self._last is None or self._last[0] != data:
            self._last = None  # two sets need not fit into memory
            self._last = data, self.read(data)
        return self._last[1]

    def _scored_images(self, data: DataConfig, _largest_side: int) -> Data:
        images = self._images(data)
        _require_classes(data.source, images)
        return images


def _require_classes(source: str, image_set: Data) -> None:
    """A table is of scores: what has none must not show after the training."""
    if image_set.targets is not None:
        return
    columns = ", ".join(label_columns(source))
    where = f" but in one of its columns {columns}" if columns else ""
    raise InputError(
        f"{source} has no classes to score against{where}",
        remedy="name it by {data.target}" if columns else "name what has by {data.source}",
    )


class _Deadline(PassingObserver):
    """After the deadline, the signal that Ctrl-C would be."""

    def __init__(self, observer: Observer, is_over: Callable[[], bool]) -> None:
        super().__init__(observer)
        self.is_over = is_over
        self.has_asked = False

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        super().on_step(terms, n_images)
        if not self.has_asked and self.is_over():
            self.has_asked = True  # a second signal would act at once
            signal.raise_signal(signal.SIGINT)
