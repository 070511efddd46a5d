"""A row's runs counted together: mean and spread over seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcdc.reproduce.chosen_epoch import CRITERIA, METRICS
from dcdc.reproduce.outcome import Outcome, read_outcome
from dcdc.reproduce.runs import Options, Run, plan
from dcdc.reproduce.tables import Row


@dataclass(frozen=True)
class Figure:
    mean: float
    spread: float | None = None
    """Standard deviation over seeds (n - 1); None for one seed."""

    def __str__(self) -> str:
        return dotted(self.mean) + ("" if self.spread is None else f" ± {dotted(self.spread)}")


def over_seeds(values: Sequence[float]) -> Figure | None:
    """None where there is nothing."""
    if not values:
        return None
    return Figure(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Result:
    run: Run
    outcome: Outcome
    fault: str = ""
    """Why it did not finish, if it tried."""

    @property
    def folder(self) -> Path:
        """Where it was read."""
        return self.outcome.longer or self.run.folder


@dataclass(frozen=True)
class RowResult:
    row: Row
    results: tuple[Result, ...]
    """One for each seed."""

    @property
    def finished(self) -> list[Result]:
        return [result for result in self.results if result.outcome.state == "done"]

    def figure(self, criterion: str, metric: str) -> Figure | None:
        """Over the finished runs; None where not one of them has it."""
        values = []
        for result in self.finished:
            chosen = result.outcome.chosen[criterion]
            if chosen is not None and metric in chosen.scores:
                values.append(chosen.scores[metric])
        return over_seeds(values)

    @property
    def seeds(self) -> str:
        """Those that the figures are of."""
        return ", ".join(str(result.run.config.train.seed) for result in self.finished) or "-"

    @property
    def epochs(self) -> str:
        finished = self.finished
        if finished:
            return epochs_text(finished[0].outcome.epochs, finished[0].run.full_epochs)
        return "-"

    @property
    def seconds(self) -> float | None:
        """Of training, the mean over the finished runs."""
        times = [result.outcome.metrics["training_seconds"] for result in self.finished]
        return statistics.fmean(times) if times else None


def summarise(rows: Sequence[Row], options: Options, faults: Mapping[Path, str]) -> list[RowResult]:
    """Reads every run's folder; `faults` are those of a session just ended, by folder."""
    summary = []
    for row in rows:
        results = []
        for run in plan(row, options):
            outcome = read_outcome(run)
            results.append(Result(run, outcome, faults.get(run.folder, outcome.fault)))
        summary.append(RowResult(row, tuple(results)))
    return summary


def epochs_text(done: int, full: int) -> str:
    """Of a run that was meant to be shorter, or longer, than its preset: both."""
    if done == full:
        return str(done)
    return f"{done} of {full} epochs" if done < full else f"{done} instead of {full} epochs"


def dotted(value: float) -> str:
    """Three digits, as the paper's tables are quoted: .699."""
    text = f"{value:.3f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def cells(result: RowResult) -> list[str]:
    """Ours by criterion and metric, then the paper's; a dash for what is not known."""
    ours = [result.figure(criterion, metric) for criterion in CRITERIA for metric in METRICS]
    published = [getattr(result.row.published, metric) for metric in METRICS]
    return [
        *("-" if figure is None else str(figure) for figure in ours),
        *("-" if value is None else dotted(value) for value in published),
    ]
