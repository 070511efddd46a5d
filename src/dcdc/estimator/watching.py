"""Training as it is watched from Python: a bar where it can be seen, plain lines if asked for."""

import io
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from dcdc.engine.observer import Observer, SilentObserver

if TYPE_CHECKING:
    from torch import Tensor

_SECONDS = 0.5  # between two looks at a notebook
_COLUMNS = 80
_Bar = tuple[Progress, Callable[[], None]]


@contextmanager
def watching(verbose: int | None, title: str = "DCDC") -> Iterator[Observer]:
    """`verbose` None: a bar, where it can be seen; otherwise lines, as many as it says."""
    if verbose is None and can_be_seen():
        with drawn_bar() as bar:
            yield BarObserver(bar, title)
    else:
        yield EstimatorObserver(verbose or 0, title)


class EstimatorObserver(SilentObserver):
    """`verbose` 0 prints nothing, 1 a line per epoch, 2 also how the run is done.

    What is wrong with the partition after an epoch may be right later: `fit` warns of the last one.
    """

    def __init__(self, verbose: int, title: str = "DCDC") -> None:
        self.verbose = int(verbose)
        self.title = title
        self.epochs = 0

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:  # noqa: ARG002
        self.epochs = epochs

    def on_epoch(self, record: dict[str, Any]) -> None:
        if self.verbose:
            active = record.get("active_clusters")
            clusters = "" if active is None else f", {active}/{len(record['sizes'])} clusters"
            print(
                f"[{self.title}] epoch {record['epoch']}/{self.epochs}, "
                f"loss {record['loss']:.4f}{clusters}, {record['seconds']:.1f} s",
                flush=True,
            )

    def note(self, message: str) -> None:
        if self.verbose > 1:
            print(f"[{self.title}] {message}", flush=True)

    def warn(self, message: str) -> None:
        if self.verbose:
            print(f"[{self.title}] warning: {message}", flush=True)


def can_be_seen() -> bool:
    """Whether a bar has a place here: not in a pipe, a worker process or a thread of somebody's."""
    alone = multiprocessing.current_process().name == "MainProcess"
    return (
        alone
        and threading.current_thread() is threading.main_thread()
        and (in_notebook() or sys.stderr.isatty())
    )


def in_notebook() -> bool:
    """Whether what is displayed goes to a page, not to a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def drawn_bar() -> Iterator[_Bar]:
    """The bar, and what brings it to the eye after a change; nothing of it stays."""
    if not in_notebook():
        console = Console(stderr=True)
        with Progress(*_columns(), console=console, transient=True) as progress:
            yield progress, lambda: None
        return
    from IPython.display import display

    progress = Progress(*_columns(), console=_written_to(io.StringIO()))
    handle = None
    drawn_at = 0.0

    def draw() -> None:
        nonlocal handle, drawn_at
        now = time.perf_counter()
        if now - drawn_at < _SECONDS:
            return
        drawn_at = now
        if handle is None:
            handle = display(_as_text(""), raw=True, display_id=True)
        handle.update(_as_text(_text_of(progress)), raw=True)

    try:
        yield progress, draw
    finally:
        if handle is not None:
            handle.update(_as_text(""), raw=True)


def _columns() -> tuple[Any, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )


def _text_of(progress: Progress) -> str:
    text = io.StringIO()
    _written_to(text).print(progress.make_tasks_table(progress.tasks))
    return text.getvalue().rstrip()


def _written_to(text: io.StringIO) -> Console:
    """By itself, rich would display each line anew in a notebook, or ask for widgets."""
    return Console(file=text, width=_COLUMNS, color_system=None, force_jupyter=False)


def _as_text(text: str) -> dict[str, str]:
    return {"text/plain": text}


class BarObserver(SilentObserver):
    """Training as a bar over its steps."""

    def __init__(self, bar: _Bar, title: str) -> None:
        self._progress, self._draw = bar
        self._title = title
        self._epochs = 0
        self._task: TaskID | None = None

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        self._epochs = epochs
        self._task = self._progress.add_task(self._at(epoch + 1), total=steps_left)

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:  # noqa: ARG002
        assert self._task is not None
        self._progress.advance(self._task)
        self._draw()

    def on_epoch(self, record: dict[str, Any]) -> None:
        assert self._task is not None
        following = min(record["epoch"] + 1, self._epochs)
        self._progress.update(self._task, description=self._at(following))

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        task: TaskID | None = None

        def count(done: int, total: int) -> None:
            nonlocal task
            if task is None:  # of what is there already, nothing is counted
                task = self._progress.add_task(f"{self._title}: {what}", total=total)
                self._show_training(False)
            self._progress.update(task, completed=done, total=total)
            self._draw()

        try:
            yield count
        finally:
            if task is not None:
                self._progress.remove_task(task)
                self._show_training(True)

    def _show_training(self, visible: bool) -> None:
        """One bar at a time."""
        if self._task is not None:
            self._progress.update(self._task, visible=visible)

    def _at(self, epoch: int) -> str:
        return f"{self._title}: epoch {epoch}/{self._epochs}"
