"""Where a run stands, and what came of it, read from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dcdc.config import NEUTRAL_KEYS, RunConfig, differences, flat, with_values
from dcdc.config_for_images import epochs_alone
from dcdc.errors import InputError
from dcdc.reproduce.chosen_epoch import EpochScores, choose, is_evaluated
from dcdc.reproduce.runs import Run
from dcdc.run import read_config
from dcdc.run_folder import RunFolder

State = Literal["done", "begun", "missing", "other"]
"""other: the folder holds something else, so it is neither shown nor gone on with."""

_OF_ANY_EPOCH = ("device", "torch", "dcdc", "commit", "n_images")


@dataclass(frozen=True)
class Outcome:
    state: State
    epochs: int = 0
    """Finished so far."""
    chosen: Mapping[str, EpochScores | None] = field(default_factory=dict)
    """Of a finished run, by criterion."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Of a finished run, as in metrics.json."""
    source: str = ""
    longer: Path | None = None
    """Folder of the run whose first epochs these are, where it was read from another's."""
    fault: str = ""
    """Why the state is `other`."""


def read_outcome(run: Run) -> Outcome:
    folder = RunFolder(run.folder)
    try:
        if folder.config_file.exists():
            return _read(run, folder)
    except InputError as error:
        return Outcome("other", fault=str(error))
    return _first_epochs(run) or Outcome("missing")


def _read(run: Run, folder: RunFolder) -> Outcome:
    stored = read_config(folder)
    changed = differences(filled_in(run.config, stored), stored)
    if changed:
        listed = "; ".join(f"{key} is {new!r}, was {old!r}" for key, (new, old) in changed.items())
        raise InputError(
            f"{run.folder} holds a run of another config ({listed}): move it away, or choose "
            "another --out"
        )
    history = folder.read_history()
    epochs = int(history[-1]["epoch"]) if history else 0
    source = stored.data.source
    if not folder.metrics_file.exists():
        return Outcome("begun", epochs, source=source)
    chosen = choose(history, _weights(stored))
    return Outcome("done", epochs, chosen, folder.read_metrics(), source)


def _first_epochs(run: Run) -> Outcome | None:
    """Of the finished longer run, as far as this one goes; None where there is none."""
    if run.longer is None or not (folder := RunFolder(run.longer)).metrics_file.exists():
        return None
    try:
        stored, metrics = read_config(folder), folder.read_metrics()
        history = [line for line in folder.read_history() if line["epoch"] <= run.epochs]
    except InputError:
        return None
    shortened = with_values(stored, {"train.epochs": run.config.train.epochs})
    if differences(filled_in(run.config, shortened), shortened):
        return None
    if len(history) < run.epochs or not is_evaluated(history[-1]):
        return None
    # What belongs to its end alone stays behind.
    metrics = {key: metrics[key] for key in _OF_ANY_EPOCH if key in metrics}
    metrics["training_seconds"] = sum(line["seconds"] for line in history)
    chosen = choose(history, _weights(stored))
    return Outcome("done", run.epochs, chosen, metrics, stored.data.source, run.longer)


def _weights(config: RunConfig) -> dict[str, float]:
    """Of the loss terms, by their names in the history."""
    loss = config.loss
    return {
        "sample_view": loss.sample_weight,
        "class_view": loss.class_weight,
        "balance": loss.balance_weight,
    }


def filled_in(asked: RunConfig, stored: RunConfig) -> RunConfig:
    """`asked`, with what it leaves open as the stored run has it."""
    kept = flat(stored)
    values = {
        key: kept[key]
        for key, value in flat(asked).items()
        if value in (None, "", "auto") and key not in NEUTRAL_KEYS
    }
    values["train.over_clustering_first"] = epochs_alone(asked.train)
    return with_values(asked, values)
