"""A method and a seed become a run: what is asked of it, and the folder it is found in."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dcdc.config import DataConfig
from dcdc.errors import InputError
from dcdc.experiments.chosen_epoch import LAST, EpochScores
from dcdc.experiments.names import name_of
from dcdc.experiments.paper import COMPARISON
from dcdc.experiments.standing import Row, Standing, require_same
from dcdc.methods import find_method
from dcdc.run_folder import RunFolder

METHOD_FOLDER = "run"
"""In a run's folder, for the method itself: DCDC leaves a whole run folder there."""

ERRORS = "error.txt"
"""What a process said that ended unexpectedly."""

_ABSENT = "absent"
_RENAMED = {"settings.n_heaps": "settings.n_micro_clusters"}
"""Keys of older folders."""


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
class MethodRow(Row):
    method: str


@dataclass(frozen=True)
class MethodRun:
    method: str
    settings: Mapping[str, Any]
    """Every one."""
    seed: int
    task: Task
    folder: Path
    epochs: None = None

    @property
    def row(self) -> MethodRow:
        dataset = self.task.dataset
        published = COMPARISON.get(self.method, {}).get(dataset)
        return MethodRow(dataset, find_method(self.method).title, published, self.method)

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

    def job(self) -> dict[str, Any]:
        """For the process that carries it out, in which nobody registers a method."""
        return {
            "asked": self.described(),
            "folder": str(self.folder),
            "device": self.task.device,
            "method": asdict(find_method(self.method)),
            "path": sys.path,
        }

    def standing(self) -> Standing:
        folder = RunFolder(self.folder)
        if not folder.config_file.exists():
            return Standing("missing")
        try:
            asked, stored = _flat(self.described()), _flat(folder.read_config())
            both = (
                (key, asked.get(key, _ABSENT), stored.get(key, _ABSENT)) for key in asked | stored
            )
            require_same(self.folder, {key: (new, old) for key, new, old in both if new != old})
            if not folder.metrics_file.exists():
                return Standing("begun")
            metrics = folder.read_metrics()
        except InputError as error:
            return Standing("other", fault=error)
        epochs = metrics.get("epochs") or 0
        return Standing("done", metrics, {LAST: EpochScores(epochs, metrics["scores"] or {})})


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
    usual = find_method(method).settings()
    changed = {key: value for key, value in settings[method].items() if value != usual[key]}
    return "-".join(filter(None, (method, name_of({**changed, **task.named}), f"seed-{seed}")))


def _flat(mapping: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in mapping.items():
        key = _RENAMED.get(within + name, within + name)
        found |= _flat(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return found
