"""A method, its settings and a seed become a run: what is asked of it, and its folder.

Settings are typed as `METHOD.KEY=VALUE`, read and checked by the signatures of methods.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dcdc.config import DataConfig, parse_settings
from dcdc.config.keys import flatten
from dcdc.config.typed_values import coerce_value, parse_value
from dcdc.data.sources import same_source
from dcdc.engine.model_files import METRICS
from dcdc.errors import InputError
from dcdc.experiments.chosen_epoch import LAST, EpochScores
from dcdc.experiments.names import name_of
from dcdc.experiments.paper import BY_THEIR_AUTHORS, COMPARISON
from dcdc.experiments.rows import Row, Standing, require_same
from dcdc.methods import METHODS, Method, find_method
from dcdc.nearest_name import nearest
from dcdc.prepare.overrides import Overrides
from dcdc.run_folder import RunFolder

METHOD_FOLDER = "run"
"""In a run's folder, for the method itself: DCDC leaves a whole run folder there."""

ERRORS = "error.txt"
"""What a process said that ended unexpectedly."""

ENGINE_CHANGES = "changes"
"""The argument by which a method that is a run of the engine takes `section.key=value`."""
_OWN_OPTIONS = {
    key: f"{{{key}}}"
    for key in (
        *("train.device", "data.source", "data.size", "data.target", "data.on_bad"),
        "data.column",
    )
} | {"train.seed": "{seeds} and {first_seed}"}
_ABSENT = "absent"
_SOURCE = "data.source"
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
    features: "Features | None" = None
    """Feature vectors instead of pixels."""


@dataclass(frozen=True)
class Features:
    """On what feature vectors methods are compared, whoever made them."""

    told: str
    """In titles: what made them, and what trained that."""
    backbone: str = ""
    """The pretrained backbone that made them of the images; none: the source holds them."""
    pretrained: Mapping[str, Any] | None = None
    """What the backbone says of itself."""
    file: str = ""
    """float32, memory-mapped, where a backbone made them."""
    n_features: int = 0


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
        # Published figures are from scratch, and are never shown beside those on given features.
        known = {} if self.task.features is not None else {**COMPARISON, **BY_THEIR_AUTHORS}
        published = known.get(self.method, {}).get(dataset)
        return MethodRow(dataset, find_method(self.method).title, published, self.method)

    def described(self) -> dict[str, Any]:
        """As in config.json; the device changes nothing in what is asked."""
        asked = {
            "method": self.method,
            "seed": self.seed,
            "n_clusters": self.task.n_clusters,
            "settings": dict(self.settings),
            "data": _told_data(self.task.data) | {"dataset": self.task.dataset},
        }
        if self.task.features is not None and self.task.features.backbone:
            asked["backbone"] = self.task.features.backbone
        plain: dict[str, Any] = _plain(asked)
        return plain

    def job(self) -> dict[str, Any]:
        """For the process that carries it out, in which nobody registers a method."""
        return {
            "asked": self.described(),
            "folder": str(self.folder),
            "device": self.task.device,
            "method": asdict(find_method(self.method)),
            "features": None if self.task.features is None else asdict(self.task.features),
            "path": sys.path,
        }

    def standing(self) -> Standing:
        folder = RunFolder(self.folder)
        if not folder.config_file.exists():
            return Standing("missing")
        try:
            asked, stored = flatten(self.described()), flatten(folder.read_config())
            stored = {_RENAMED.get(key, key): value for key, value in stored.items()}
            if same_source(asked[_SOURCE], str(stored.get(_SOURCE, ""))):
                stored[_SOURCE] = asked[_SOURCE]
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


def _told_data(data: DataConfig) -> dict[str, Any]:
    """Without what older folders do not have, where it says nothing."""
    told = asdict(data)
    for key in ("column", "n_features"):
        if told[key] is None:
            del told[key]
    return told


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


def with_earlier(asked: Sequence[MethodRun], out: Path) -> list[MethodRun]:
    """The runs of a whole table: those asked for, and what `out` holds of earlier calls on the same
    images: other seeds, and other methods, each with the settings that it had last."""
    if not asked:
        return []
    task, at_hand = asked[0].task, {run.folder for run in asked}
    now = {run.method: dict(run.settings) for run in asked}
    found = []
    newest_first = sorted(out.glob(f"*/{METRICS}"), key=lambda file: -file.stat().st_mtime_ns)
    for file in newest_first:
        run = None if file.parent in at_hand else _stored_run(file.parent, task)
        if run is None or run.standing().state != "done":
            continue
        last = now.setdefault(run.method, dict(run.settings))
        if _plain(last) == _plain(run.settings):
            found.append(run)
    order = METHODS.names()
    return sorted([*asked, *found], key=lambda run: (order.index(run.method), run.seed))


def _stored_run(folder: Path, task: Task) -> MethodRun | None:
    """As its config tells, whatever images it is of."""
    try:
        stored = RunFolder(folder).read_config()
        method, settings, seed = stored["method"], stored["settings"], stored["seed"]
    except (InputError, KeyError):
        return None
    if method not in METHODS.names() or not isinstance(settings, dict):
        return None
    return MethodRun(method, settings, seed, task, folder)


def _plain(settings: Mapping[str, Any]) -> Any:
    """As in a file."""
    return json.loads(json.dumps(dict(settings)))


def _name(method: str, settings: Mapping[str, Mapping[str, Any]], seed: int, task: Task) -> str:
    """Such as `k-means-n-init-3-seed-0`."""
    usual = find_method(method).settings()
    changed = {key: value for key, value in settings[method].items() if value != usual[key]}
    return "-".join(filter(None, (method, name_of({**changed, **task.named}), f"seed-{seed}")))


def read_settings(texts: Iterable[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every setting of every method."""
    found = {method: find_method(method).settings() for method in methods}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        method, dot, key = name.partition(".")
        if not equals or not dot:
            raise InputError(
                "is not METHOD.KEY=VALUE, such as k-means.n_init=3", parameter="set", value=text
            )
        entry = find_method(method)
        if method not in found:
            raise InputError(
                f"is for {method}, which is not compared",
                parameter="set",
                value=text,
                remedy="name it in {methods}, too",
            )
        known = found[method]
        if ENGINE_CHANGES in known and ("." in key or key == "phases"):
            known[ENGINE_CHANGES] = (*known[ENGINE_CHANGES], _engine_setting(key, value))
        else:
            known[key] = _value(entry, key, parse_value(value), known)
    for method, known in found.items():
        _check_changes(method, known)
    return found


def _value(method: Method, key: str, value: Any, known: dict[str, Any]) -> Any:
    if key not in known:
        takes = ", ".join(known) or "nothing"
        raise InputError(
            f"{method.name} has no setting {key!r}{nearest(key, known) or '.'} It takes {takes}"
        )
    return coerce_value(f"{method.name}.{key}", value, method.setting_types()[key])


def _engine_setting(key: str, value: str) -> str:
    if key in _OWN_OPTIONS:
        raise InputError(f"{key} is no setting of one method", remedy=f"use {_OWN_OPTIONS[key]}")
    return f"{key}={value}"


def _check_changes(method: str, known: Mapping[str, Any]) -> None:
    """Refuses names and values that no recipe allows, before a process is started."""
    changes, recipe = known.get(ENGINE_CHANGES), known.get("recipe")
    if changes is not None and (changes or recipe):
        try:
            Overrides(parse_settings(changes), recipe).alone()
        except InputError as error:
            raise error.within(method) from None
