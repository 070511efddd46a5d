"""A row becomes runs: a config, a folder and a plain `dcdc fit` command for each seed."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dcdc.config import RunConfig, flat, with_settings, with_values
from dcdc.errors import InputError
from dcdc.presets import preset
from dcdc.report.reproduce import setting_text
from dcdc.reproduce.run_names import changes, name_of, run_name
from dcdc.reproduce.tables import Row, Table

_FLAGS = {
    "n_clusters": "--clusters",
    "train.epochs": "--epochs",
    "train.batch_size": "--batch-size",
    "train.seed": "--seed",
    "train.device": "--device",
    "data.size": "--size",
    "data.target": "--target",
    "data.on_bad": "--on-bad",
}
_OWN_OPTIONS = {
    "train.seed": "--seeds and --first-seed",
    "train.epochs": "--epochs",
    "train.device": "--device",
    "data.source": "--data NAME=SOURCE",
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


@dataclass(frozen=True)
class Run:
    dataset: str
    preset: str
    config: RunConfig
    """Without a source where none was given: a run that was begun keeps its own."""
    folder: Path
    longer: Path | None = None
    """Folder of the run of the preset's length that begins as this one does, epoch for epoch."""

    @property
    def epochs(self) -> int:
        """Of all its phases."""
        return _of_all_phases(self.config)

    @property
    def full_epochs(self) -> int:
        """Of its preset."""
        return _of_all_phases(preset(self.preset))

    def named(self) -> RunConfig:
        """With the source that a new run takes."""
        source = self.config.data.source or self.dataset
        return replace(self.config, data=replace(self.config.data, source=source))


def _of_all_phases(config: RunConfig) -> int:
    return config.instance.epochs + config.train.epochs + config.self_label.epochs


def plan(row: Row, options: Options) -> list[Run]:
    """The row's runs, one for each seed."""
    recipe = preset(row.preset)
    runs = []
    for seed in options.seeds:
        values: dict[str, Any] = {
            "train.seed": seed,
            "train.device": options.device,
            "data.source": options.sources.get(row.dataset, ""),
            **row.values,
        }
        if options.epochs is not None:
            values["train.epochs"] = options.epochs
        config = with_settings(with_values(recipe, values), options.settings)
        home = options.out / row.dataset
        longer = None
        if _begins_alike(config, recipe):
            whole = with_values(config, {"train.epochs": recipe.train.epochs})
            longer = home / run_name(whole, row.preset, recipe)
        folder = home / run_name(config, row.preset, recipe)
        runs.append(Run(row.dataset, row.preset, config, folder, longer))
    return runs


def _begins_alike(config: RunConfig, recipe: RunConfig) -> bool:
    """Whether the recipe's own length would change nothing in the epochs that `config` has."""
    train = config.train
    return (
        train.epochs < recipe.train.epochs
        and train.schedule == "constant"
        and (train.over_clustering_first == 0 or train.over_clustering_first >= 1)
        and config.self_label.epochs == 0
    )


def check_settings(table: Table, settings: Iterable[str]) -> None:
    """A setting for every run must leave alone what has its own option or makes the rows."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if key in _OWN_OPTIONS:
            raise InputError(f"--set {key} does not go here: use {_OWN_OPTIONS[key]}")
        if key in table.varied:
            raise InputError(
                f"--set {setting} would make rows of table {table.name} alike, since {key} is "
                "what they differ in: leave it out"
            )


def file_stem(table: Table, options: Options) -> str:
    """Of the table's own files: shorter or otherwise changed runs have files of their own."""
    values = _settings(table, options)
    usual = {preset(row.preset).train.epochs for row in table.rows}
    if options.epochs is not None and usual != {options.epochs}:
        values = {"train.epochs": options.epochs, **values}
    return "-".join(filter(None, (table.name, name_of(values))))


def settings_text(table: Table, options: Options) -> str:
    """The settings that every run has, for a heading."""
    values = _settings(table, options)
    return ", ".join(f"{key}={setting_text(value)}" for key, value in values.items())


def _settings(table: Table, options: Options) -> dict[str, Any]:
    """By `section.key`, as the config reads them."""
    values = flat(with_settings(preset(table.rows[0].preset), options.settings))
    keys = (setting.partition("=")[0].strip() for setting in options.settings)
    return {key: values[key] for key in keys}


def command(run: Run, *, source: str = "", resume: bool = False) -> str:
    """What a person would type for this run alone."""
    changed = changes(run.config, preset(run.preset))
    # Always told: a seed is part of what a run is.
    changed = {"train.seed": run.config.train.seed, **changed}
    changed.pop("data.source", None)
    words = ["dcdc", "fit", source or run.named().data.source, "--preset", run.preset]
    for key, value in changed.items():
        if key in _FLAGS and value is not None:
            words += [_FLAGS[key], str(value)]
        else:
            words += ["--set", f"{key}={setting_text(value)}"]
    words += ["--run", str(run.folder)]
    return shlex.join([*words, "--resume"] if resume else words)
