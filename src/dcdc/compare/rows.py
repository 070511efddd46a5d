"""A method's runs counted together: mean and spread over seeds, beside the published figures."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcdc.compare.runs import MethodRun
from dcdc.compare.standing import MethodStanding, read_standing
from dcdc.methods import find_method
from dcdc.reproduce.paper import COMPARISON, Published
from dcdc.reproduce.summary import Figure, over_seeds


@dataclass(frozen=True)
class MethodResult:
    run: MethodRun
    standing: MethodStanding
    fault: str = ""
    """Why it did not finish, if it tried."""


@dataclass(frozen=True)
class MethodRow:
    method: str
    results: tuple[MethodResult, ...]
    """One for each seed."""

    @property
    def title(self) -> str:
        return find_method(self.method).title

    @property
    def published(self) -> Published | None:
        dataset = self.results[0].run.task.dataset
        return COMPARISON.get(self.method, {}).get(dataset)

    @property
    def finished(self) -> list[MethodResult]:
        return [result for result in self.results if result.standing.state == "done"]

    def values(self, metric: str) -> list[float]:
        """Of the finished runs; none where there are no targets."""
        scores = [result.standing.metrics["scores"] for result in self.finished]
        return [score[metric] for score in scores if score]

    def figure(self, metric: str) -> Figure | None:
        return over_seeds(self.values(metric))

    @property
    def seeds(self) -> list[int]:
        """Those that the figures are of."""
        return [result.run.seed for result in self.finished]

    @property
    def seconds(self) -> float | None:
        times = [result.standing.metrics["training_seconds"] for result in self.finished]
        return statistics.fmean(times) if times else None

    @property
    def memory_mb(self) -> float | None:
        """The largest peak of a process."""
        return self._largest("peak_memory_mb")

    @property
    def gpu_memory_mb(self) -> float | None:
        return self._largest("peak_gpu_memory_mb")

    @property
    def devices(self) -> list[str]:
        return list(dict.fromkeys(result.standing.metrics["device"] for result in self.finished))

    def _largest(self, key: str) -> float | None:
        peaks = [result.standing.metrics.get(key) for result in self.finished]
        return max((peak for peak in peaks if peak is not None), default=None)


def summarise(runs: Sequence[MethodRun], faults: Mapping[Path, str]) -> list[MethodRow]:
    """Reads every run's folder; `faults` are those of a session just ended, by folder."""
    by_method: dict[str, list[MethodResult]] = {}
    for run in runs:
        standing = read_standing(run)
        result = MethodResult(run, standing, faults.get(run.folder, standing.fault))
        by_method.setdefault(run.method, []).append(result)
    return [MethodRow(method, tuple(results)) for method, results in by_method.items()]
