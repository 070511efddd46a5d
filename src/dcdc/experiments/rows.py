"""The state of a run, and the runs of a row counted together: mean and deviation over seeds."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from dcdc.errors import PLAIN, InputError, Words
from dcdc.experiments.chosen_epoch import METRICS, EpochScores


@dataclass(frozen=True)
class Published:
    """By the paper; some of its tables print ACC alone."""

    acc: float
    nmi: float | None = None
    ari: float | None = None


@dataclass(frozen=True)
class Row:
    """What a table's row shows: runs that differ in their seeds alone."""

    dataset: str
    title: str
    published: Published | None


@dataclass(frozen=True)
class Standing:
    state: Literal["done", "begun", "missing", "other"]
    """other: the folder holds something else, so it is neither shown nor gone on with."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Of a finished run, as in metrics.json."""
    chosen: Mapping[str, EpochScores | None] = field(default_factory=dict)
    """Of a finished run, by criterion."""
    epochs: int = 0
    """Finished so far, where they are counted."""
    source: str = ""
    longer: Path | None = None
    """Folder of the run whose first epochs these are, where it was read from another's."""
    fault: InputError | None = None
    """Why the state is `other`."""


class Run(Protocol):
    @property
    def row(self) -> Row: ...

    @property
    def seed(self) -> int: ...

    @property
    def folder(self) -> Path: ...

    @property
    def epochs(self) -> int | None:
        """Of all its phases; None where they are not counted."""

    def standing(self) -> Standing:
        """Reads the folder."""


R = TypeVar("R", bound=Run)


def require_same(folder: Path, changed: Mapping[str, tuple[Any, Any]]) -> None:
    """`changed`: what is asked for and what is stored, by key, where they differ."""
    if changed:
        listed = "; ".join(f"{key} is {new!r}, was {old!r}" for key, (new, old) in changed.items())
        raise InputError(
            f"{folder} holds a run of something else ({listed})",
            remedy=("move it away", "choose another {out}"),
        )


@dataclass(frozen=True)
class Figure:
    mean: float
    spread: float | None = None
    """Standard deviation over seeds (n - 1); None for one seed."""

    def __str__(self) -> str:
        return dotted(self.mean) + ("" if self.spread is None else f" ± {dotted(self.spread)}")


def dotted(value: float) -> str:
    """Three digits, as the paper's tables are quoted: .699."""
    text = f"{value:.3f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def or_dash(value: Figure | float | None, form: str = "{}") -> str:
    """A dash for what is not known."""
    return "-" if value is None else form.format(value)


@dataclass(frozen=True)
class Result(Generic[R]):
    run: R
    standing: Standing
    fault: str = ""
    """Why it did not finish, if it tried."""

    @property
    def folder(self) -> Path:
        """Where it was read."""
        return self.standing.longer or self.run.folder


@dataclass(frozen=True)
class RowResult(Generic[R]):
    row: Row
    results: tuple[Result[R], ...]
    """One for each seed."""

    @property
    def finished(self) -> list[Result[R]]:
        return [result for result in self.results if result.standing.state == "done"]

    def values(self, criterion: str, metric: str) -> list[float]:
        """Of the finished runs that have it."""
        chosen = [result.standing.chosen[criterion] for result in self.finished]
        return [
            each.scores[metric] for each in chosen if each is not None and metric in each.scores
        ]

    def figure(self, criterion: str, metric: str) -> Figure | None:
        values = self.values(criterion, metric)
        if not values:
            return None
        spread = statistics.stdev(values) if len(values) > 1 else None
        return Figure(statistics.fmean(values), spread)

    def cells(self, criterion: str) -> list[str]:
        """By metric; a dash for what is not known."""
        return [or_dash(self.figure(criterion, metric)) for metric in METRICS]

    def published(self, metric: str) -> float | None:
        value: float | None = getattr(self.row.published, metric, None)
        return value

    def published_cells(self) -> list[str]:
        values = [self.published(metric) for metric in METRICS]
        return ["-" if value is None else dotted(value) for value in values]

    @property
    def seeds_text(self) -> str:
        return ", ".join(map(str, self.seeds)) or "-"

    @property
    def seeds(self) -> list[int]:
        """Those that the figures are of."""
        return [result.run.seed for result in self.finished]

    @property
    def seconds(self) -> float | None:
        """Of training, the mean over the finished runs."""
        times = [result.standing.metrics["training_seconds"] for result in self.finished]
        return statistics.fmean(times) if times else None

    def largest(self, key: str) -> float | None:
        """Of the finished runs' metrics."""
        values = [result.standing.metrics.get(key) for result in self.finished]
        return max((value for value in values if value is not None), default=None)


def summarise(
    runs: Iterable[R], faults: Mapping[Path, str], words: Words = PLAIN
) -> list[RowResult[R]]:
    """Reads every run's folder; `faults` are those of a session just ended, by folder. Others are
    told in `words`."""
    by_row: dict[Row, list[Result[R]]] = {}
    for run in runs:
        standing = run.standing()
        fault = "" if standing.fault is None else standing.fault.told(words)
        result = Result(run, standing, faults.get(run.folder, fault))
        by_row.setdefault(run.row, []).append(result)
    return [RowResult(row, tuple(results)) for row, results in by_row.items()]


def all_results(rows: Sequence[RowResult[R]]) -> list[Result[R]]:
    return [result for row in rows for result in row.results]
