"""A run of a preset with one seed: its config, its `dcdc fit` command, and what came of it."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dcdc.config import NEUTRAL_KEYS, RunConfig, differences, flat, with_values
from dcdc.errors import InputError
from dcdc.experiments.chosen_epoch import choose, is_evaluated
from dcdc.experiments.names import changes
from dcdc.experiments.paper_tables import RecipeRow
from dcdc.experiments.standing import Standing, require_same
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.report.reproduce import setting_text
from dcdc.run import read_config
from dcdc.run_folder import RunFolder

_FLAGS = {
    "n_clusters": "--clusters",
    "heads.epochs": "--epochs",
    "heads.batch_size": "--batch-size",
    "train.seed": "--seed",
    "train.device": "--device",
    "data.size": "--size",
    "data.target": "--target",
    "data.on_bad": "--on-bad",
}
_OF_ANY_EPOCH = ("device", "torch", "dcdc", "commit", "n_images")


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
            if key in _FLAGS and value is not None:
                words += [_FLAGS[key], str(value)]
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
    values["heads.over_clustering_first"] = float(heads_of(asked).epochs_alone)
    return with_values(asked, values)


def _weights(config: RunConfig) -> dict[str, float]:
    """Of the loss terms, by their names in the history."""
    heads = heads_of(config)
    return {
        "sample_view": heads.sample_weight,
        "class_view": heads.class_weight,
        "balance": heads.balance_weight,
    }
