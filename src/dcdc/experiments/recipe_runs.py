"""Rows of a table become runs of a preset, one for each seed, and are read from their folders."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dcdc.config import NEUTRAL_KEYS, RunConfig, differences, flat, with_settings, with_values
from dcdc.config.keys import HEADS, OF_MAIN_PHASE
from dcdc.data.sources import same_source
from dcdc.errors import InputError
from dcdc.experiments import FIT_FLAGS
from dcdc.experiments.chosen_epoch import choose, is_evaluated
from dcdc.experiments.names import changes, name_of, run_name
from dcdc.experiments.paper import RecipeRow, Table
from dcdc.experiments.rows import Standing, require_same
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.report.reproduce import setting_text
from dcdc.run import read_config
from dcdc.run_folder import RunFolder

_OF_ANY_EPOCH = ("device", "torch", "dcdc", "commit", "n_images")
_OWN_OPTIONS = {
    "train.seed": "{seeds} and {first_seed}",
    **dict.fromkeys(("epochs", "heads.epochs"), "{heads.epochs}"),
    "train.device": "{train.device}",
    "data.source": "{data.source}",
}


@dataclass(frozen=True)
class RecipeRun:
    row: RecipeRow
    config: RunConfig
    """Without a source where none was given: a run that was begun keeps its own."""
    folder: Path
    longer: Path | None = None
    """Folder of the run of the preset's length that begins as this one does, epoch for epoch."""

    @property
    def seed(self) -> int:
        return self.config.train.seed

    @property
    def epochs(self) -> int:
        """Of all its phases."""
        return self.config.epochs

    @property
    def full_epochs(self) -> int:
        """Of its preset."""
        return preset(self.row.preset).epochs

    def named(self) -> RunConfig:
        """With the source that a new run takes."""
        source = self.config.data.source or self.row.dataset
        return replace(self.config, data=replace(self.config.data, source=source))

    def changes(self) -> dict[str, Any]:
        """What differs from the preset; the source is told by itself."""
        found = changes(self.config, preset(self.row.preset))
        return {key: value for key, value in found.items() if key != "data.source"}

    def command(self, *, source: str = "", resume: bool = False) -> str:
        """What a person would type for this run alone."""
        words = ["dcdc", "fit", source or self.named().data.source, "--preset", self.row.preset]
        # Always told: a seed is part of what a run is.
        for key, value in {"train.seed": self.seed, **self.changes()}.items():
            if key in FIT_FLAGS and value is not None:
                words += [FIT_FLAGS[key], str(value)]
            else:
                words += ["--set", f"{key}={setting_text(value)}"]
        words += ["--run", str(self.folder)]
        return shlex.join([*words, "--resume"] if resume else words)

    def standing(self) -> Standing:
        folder = RunFolder(self.folder)
        try:
            if folder.config_file.exists():
                return self._read(folder)
        except InputError as error:
            return Standing("other", fault=error)
        return self._first_epochs() or Standing("missing")

    def _read(self, folder: RunFolder) -> Standing:
        stored = read_config(folder)
        require_same(self.folder, differences(filled_in(self.config, stored), stored))
        history = folder.read_history()
        epochs = int(history[-1]["epoch"]) if history else 0
        source = stored.data.source
        if not folder.metrics_file.exists():
            return Standing("begun", epochs=epochs, source=source)
        chosen = choose(history, _weights(stored))
        return Standing("done", folder.read_metrics(), chosen, epochs, source)

    def _first_epochs(self) -> Standing | None:
        """Of the finished longer run, as far as this one goes; None where there is none."""
        if self.longer is None or not (folder := RunFolder(self.longer)).metrics_file.exists():
            return None
        try:
            stored, metrics = read_config(folder), folder.read_metrics()
            history = [line for line in folder.read_history() if line["epoch"] <= self.epochs]
        except InputError:
            return None
        shortened = with_values(stored, {"heads.epochs": heads_of(self.config).epochs})
        if differences(filled_in(self.config, shortened), shortened):
            return None
        if len(history) < self.epochs or not is_evaluated(history[-1]):
            return None
        # What belongs to its end alone stays behind.
        metrics = {key: metrics[key] for key in _OF_ANY_EPOCH if key in metrics}
        metrics["training_seconds"] = sum(line["seconds"] for line in history)
        chosen = choose(history, _weights(stored))
        return Standing("done", metrics, chosen, self.epochs, stored.data.source, self.longer)


def filled_in(asked: RunConfig, stored: RunConfig) -> RunConfig:
    """`asked`, with what it leaves open as the stored run has it."""
    kept = flat(stored)
    values = {
        key: kept[key]
        for key, value in flat(asked).items()
        if value in (None, "", "auto") and key not in NEUTRAL_KEYS and key in kept
    }
    if asked.main_phase == HEADS:
        values["heads.over_clustering_first"] = float(heads_of(asked).epochs_alone)
    if same_source(asked.data.source, stored.data.source):
        values["data.source"] = stored.data.source
    return with_values(asked, values)


def _weights(config: RunConfig) -> dict[str, float]:
    """Of the loss terms, by their names in the history."""
    heads = heads_of(config)
    return {
        "sample_view": heads.sample_weight,
        "class_view": heads.class_weight,
        "balance": heads.balance_weight,
    }


@dataclass(frozen=True)
class Options:
    """What holds for every run of a table."""

    out: Path = Path("runs/reproduce")
    seeds: tuple[int, ...] = (0,)
    epochs: int | None = None
    device: str = "auto"
    settings: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """By data set; others are looked for by their own name."""


def plan(rows: Iterable[RecipeRow], options: Options) -> list[RecipeRun]:
    """One run for each row and seed."""
    return [_plan(row, seed, options) for row in rows for seed in options.seeds]


def _plan(row: RecipeRow, seed: int, options: Options) -> RecipeRun:
    recipe = preset(row.preset)
    values: dict[str, Any] = {
        "train.seed": seed,
        "train.device": options.device,
        "data.source": options.sources.get(row.dataset, ""),
        **row.values,
    }
    if options.epochs is not None:
        values["epochs"] = options.epochs
    config = with_settings(with_values(recipe, values), options.settings)
    home = options.out / row.dataset
    longer = None
    if _begins_alike(config, recipe):
        whole = with_values(config, {"heads.epochs": heads_of(recipe).epochs})
        longer = home / run_name(whole, row.preset, recipe)
    return RecipeRun(row, config, home / run_name(config, row.preset, recipe), longer)


def _begins_alike(config: RunConfig, recipe: RunConfig) -> bool:
    """Whether the recipe's own length would change nothing in the epochs that `config` has."""
    heads = heads_of(config)
    return (
        heads.epochs < heads_of(recipe).epochs
        and heads.schedule == "constant"
        and (heads.over_clustering_first == 0 or heads.over_clustering_first >= 1)
        and list(config.active_phases.values())[-1] == heads
    )


def check_settings(table: Table, settings: Iterable[str]) -> None:
    """A setting for every run must leave alone what has its own option or makes the rows."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if key in _OWN_OPTIONS:
            raise InputError(f"{key} is no setting to give here", remedy=f"use {_OWN_OPTIONS[key]}")
        if key in table.varied:
            raise InputError(
                f"would make rows of table {table.name} alike, since {key} is what they differ in",
                parameter="set",
                value=setting,
                remedy="leave it out",
            )


def file_stem(table: Table, options: Options) -> str:
    """Of the table's own files: shorter or otherwise changed runs have files of their own."""
    values = _settings(table, options)
    if options.epochs is not None:
        recipes = [preset(row.preset) for row in table.rows]
        if any(with_values(recipe, {"epochs": options.epochs}) != recipe for recipe in recipes):
            values = {"epochs": options.epochs, **values}
    return "-".join(filter(None, (table.name, name_of(values))))


def settings_text(table: Table, options: Options) -> str:
    """The settings that every run has, for a heading."""
    values = _settings(table, options)
    return ", ".join(f"{key}={setting_text(value)}" for key, value in values.items())


def _settings(table: Table, options: Options) -> dict[str, Any]:
    """By `section.key`, as the config reads them."""
    config = with_settings(preset(table.rows[0].preset), options.settings)
    values, main = flat(config), config.main_phase
    keys = (setting.partition("=")[0].strip() for setting in options.settings)
    named = (f"{main}.{key}" if key in OF_MAIN_PHASE else key for key in keys)
    return {key: values[key] for key in named}
