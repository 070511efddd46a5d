"""Training as a person watches it: a bar on a terminal, a few plain lines elsewhere."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from dcdc.cli.console import err, note
from dcdc.printable import shown

if TYPE_CHECKING:
    from torch import Tensor

    from dcdc.prepare.duration import Duration

_REFRESH_SECONDS = 0.5
_PLAIN_LINES = 10


class _TimeLeft(ProgressColumn):
    """Of the stage by its pace, or as it was expected while there is none; and of those after."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        left, expected = task.time_remaining, task.fields.get("expected")
        if left is None and expected is not None:
            left = max(0.0, expected - (task.elapsed or 0.0))
        if left is None:
            return Text("-:--:--", style="progress.remaining")
        seconds = math.ceil(left + task.fields.get("after", 0.0))
        return Text(str(timedelta(seconds=seconds)), style="progress.remaining")


def _bars(title: str, words: str) -> Progress:
    """A bar, a count and the time left, which are never cut; words take what room there is."""
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn(title),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        _TimeLeft(),
        TextColumn(words, table_column=rest),
    )
    return Progress(*columns, console=err, transient=True, expand=True)


class ProgressObserver:
    """Shows loss terms, active clusters, throughput and time left."""

    def __init__(
        self,
        progress: Progress | None,
        *,
        quiet: bool = False,
        expected: "Duration | None" = None,
    ) -> None:
        self.progress = progress
        self.quiet = quiet
        self.expected = expected
        self.task: TaskID | None = None
        self.partition = ""
        self.epoch, self.epochs, self.images = 0, 0, 0
        self.steps, self.read_at = 0, 0.0
        self.phases: Sequence[tuple[str, int]] = ()
        """Name and epochs of each, where they are known."""

    def place(self, epoch: int) -> str:
        """Of an epoch of the run, counted from 1: in its phase, as settings count them."""
        number = epoch
        for name, epochs in self.phases if len(self.phases) > 1 else ():
            if number <= epochs:
                return f"{name} epoch {number}/{epochs}"
            number -= epochs
        return f"epoch {epoch}/{self.epochs}"

    def on_start(self, *, epoch: int, epochs: int, steps_left: int) -> None:
        self.epoch, self.epochs = epoch, epochs
        self.started = self.read_at = time.perf_counter()
        if self.progress:
            self.leave()
            self.task = self.progress.add_task(
                "training",
                total=steps_left,
                epoch=self.place(min(epoch + 1, epochs)),
                state="",
                expected=self.expected.training if self.expected else None,
            )

    def on_step(self, terms: "dict[str, Tensor]", n_images: int) -> None:
        self.steps += 1
        self.images += n_images
        now = time.perf_counter()
        # Reading a term waits for the device, so it is done now and then, not at every step.
        if self.progress and self.task is not None and now - self.read_at > _REFRESH_SECONDS:
            self.read_at = now
            rate = self.images / (now - self.started)
            told = " ".join(f"{_short(name)} {term.item():.3f}" for name, term in terms.items())
            state = f"{told} | {self.partition}{rate:,.0f} images/s"
            self.progress.update(self.task, completed=self.steps, state=state)

    def on_epoch(self, record: dict[str, Any]) -> None:
        self.epoch = record["epoch"]
        if "active_clusters" in record:
            self.partition = f"{record['active_clusters']}/{len(record['sizes'])} clusters | "
        if self.progress and self.task is not None:
            following = min(self.epoch + 1, self.epochs)
            self.progress.update(self.task, completed=self.steps, epoch=self.place(following))
        elif not self.quiet and self.epoch % math.ceil(self.epochs / _PLAIN_LINES) == 0:
            note(
                f"{self.place(self.epoch)} loss {record['loss']:.3f} | {self.partition}"
                f"{record['seconds']:.1f} s"
            )

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        if self.progress is None:
            yield self._plain_count(what)
            return
        first, after = (self.expected.first, self.expected.training) if self.expected else (None, 0)
        task = self.progress.add_task(
            what, total=None, epoch=what, state="", expected=first, after=after
        )
        if self.task is not None:
            self.progress.update(self.task, visible=False)
        started = time.perf_counter()

        def count(done: int, total: int) -> None:
            assert self.progress is not None
            rate = done / (time.perf_counter() - started)
            self.progress.update(task, completed=done, total=total, state=f"{rate:,.0f} images/s")

        try:
            yield count
        finally:
            self.progress.remove_task(task)
            if self.task is not None:  # its pace begins now
                self.progress.reset(self.task, visible=True)
                self.started = self.read_at = time.perf_counter()

    def _plain_count(self, what: str) -> Callable[[int, int], None]:
        """A line for each tenth that is done, where there is no terminal."""
        told = 0

        def count(done: int, total: int) -> None:
            nonlocal told
            tenth = 10 * done // total
            if tenth > told and not self.quiet:
                told = tenth
                note(f"{what}: {done:,} of {total:,}")

        return count

    def leave(self) -> None:
        """Takes its bar away, where others stay."""
        if self.progress and self.task is not None:
            self.progress.remove_task(self.task)
            self.task = None

    def note(self, message: str) -> None:
        if not self.quiet:
            note(message)

    def warn(self, message: str) -> None:
        note(f"warning: {message}")


@contextmanager
def watching(
    *, quiet: bool = False, expected: "Duration | None" = None
) -> Iterator[ProgressObserver]:
    if quiet or not err.is_terminal:
        yield ProgressObserver(None, quiet=quiet)
        return
    with _bars("{task.fields[epoch]}", "{task.fields[state]}") as progress:
        yield ProgressObserver(progress, expected=expected)


Watch = Callable[[str], AbstractContextManager[ProgressObserver]]
"""Of a run by its name."""


@contextmanager
def watching_runs(n_runs: int, *, quiet: bool = False) -> Iterator[Watch]:
    """A bar over the runs that are to come, and below it one of the run that trains."""
    if quiet or not err.is_terminal:
        yield lambda _: watching(quiet=quiet)
        return
    with _bars("{task.fields[epoch]}", "{task.fields[state]}") as progress:
        runs = progress.add_task("runs", total=n_runs, epoch="runs", state="")

        @contextmanager
        def watch(name: str) -> Iterator[ProgressObserver]:
            progress.update(runs, state=shown(name))
            observer = ProgressObserver(progress)
            try:
                yield observer
            finally:
                observer.leave()
                progress.advance(runs)

        yield watch


@contextmanager
def counting(*, quiet: bool = False) -> "Iterator[Callable[[str, int, int], None]]":
    """A callback (what, done, total) for stages of known length: a bar, images/s and time left."""
    if quiet or not err.is_terminal:
        yield lambda *_: None
        return
    tasks: dict[str, tuple[TaskID, int, float]] = {}
    with _bars("{task.description}", "{task.fields[rate]}") as progress:

        def count(what: str, done: int, total: int) -> None:
            now = time.perf_counter()
            if what not in tasks:
                task = progress.add_task(what, total=total, completed=done, rate="")
                tasks[what] = task, done, now
            task, first, started = tasks[what]
            rate = f"{(done - first) / (now - started):,.0f} images/s" if done > first else ""
            progress.update(task, completed=done, rate=rate)

        yield count


@contextmanager
def decoding(*, quiet: bool = False) -> "Iterator[Any]":
    """A callback (done, total) for the reading of images."""
    if quiet or not err.is_terminal:
        yield None
        return
    with _bars("reading images", "") as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _short(term: str) -> str:
    """`over_clustering_head/sample_view` -> `over.sample`."""
    head, _, name = term.partition("/")
    if not name:
        return head
    return f"{head.removesuffix('_head').removesuffix('_clustering')}.{name.removesuffix('_view')}"
