"""A method and a seed become a run: what is asked of it, and the folder it is found in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dcdc.compare.settings import defaults_of
from dcdc.config import DataConfig
from dcdc.reproduce.run_names import name_of

METHOD_FOLDER = "run"
"""In a run's folder, for the method itself: DCDC leaves a whole run folder there."""

ERRORS = "error.txt"
"""What a process said that ended unexpectedly."""


@dataclass(frozen=True)
class Task:
    """What every run of a comparison has."""

    data: DataConfig
    """With the side that the images were found to have."""
    n_clusters: int
    dataset: str = ""
    """The built-in name of the images, where they are such a set."""
    device: str = "auto"
    named: Mapping[str, Any] = field(default_factory=dict)
    """Told in the names of the folders: what a person chose for the images."""


@dataclass(frozen=True)
class MethodRun:
    method: str
    settings: Mapping[str, Any]
    """Every one."""
    seed: int
    task: Task
    folder: Path

    def described(self) -> dict[str, Any]:
        """As in config.json; the device changes nothing in what is asked."""
        asked = {
            "method": self.method,
            "seed": self.seed,
            "n_clusters": self.task.n_clusters,
            "settings": dict(self.settings),
            "data": asdict(self.task.data) | {"dataset": self.task.dataset},
        }
        plain: dict[str, Any] = json.loads(json.dumps(asked))
        return plain


def plan(
    methods: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    task: Task,
    out: Path,
) -> list[MethodRun]:
    """In the order of seeds, so that every method has a figure early."""
    return [
        MethodRun(method, settings[method], seed, task, out / _name(method, settings, seed, task))
        for seed in seeds
        for method in methods
    ]


def _name(method: str, settings: Mapping[str, Mapping[str, Any]], seed: int, task: Task) -> str:
    """Such as `k-means-n-init-3-seed-0`."""
    usual = defaults_of(method)
    changed = {key: value for key, value in settings[method].items() if value != usual[key]}
    return "-".join(filter(None, (method, name_of({**changed, **task.named}), f"seed-{seed}")))
