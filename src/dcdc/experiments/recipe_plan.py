"""Rows of a table become runs: a config and a folder for each seed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcdc.config import RunConfig, flat, with_settings, with_values
from dcdc.errors import InputError
from dcdc.experiments.names import name_of, run_name
from dcdc.experiments.paper_tables import RecipeRow, Table
from dcdc.experiments.recipe_run import RecipeRun
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.report.reproduce import setting_text

_OWN_OPTIONS = {
    "train.seed": "{seeds} and {first_seed}",
    "heads.epochs": "{heads.epochs}",
    "train.device": "{train.device}",
    "data.source": "{data.source}",
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
        values["heads.epochs"] = options.epochs
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
    usual = {heads_of(preset(row.preset)).epochs for row in table.rows}
    if options.epochs is not None and usual != {options.epochs}:
        values = {"heads.epochs": options.epochs, **values}
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
