"""Where a run stands, and what came of it, read from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dcdc.config import NEUTRAL_KEYS, RunConfig, differences, flat, with_values
from dcdc.config_for_images import epochs_alone
from dcdc.errors import InputError
from dcdc.reproduce.chosen_epoch import EpochScores, choose
from dcdc.reproduce.runs import Run
from dcdc.run import read_config
from dcdc.run_folder import RunFolder

State = Literal["done", "begun", "missing", "other"]
"""other: the folder holds something else, so it is neither shown nor gone on with."""


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
    fault: str = ""
    """Why the state is `other`."""


def read_outcome(run: Run) -> Outcome:
    folder = RunFolder(run.folder)
    if not folder.config_file.exists():
        return Outcome("missing")
    try:
        return _read(run, folder)
    except InputError as error:
        return Outcome("other", fault=str(error))


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
    loss = stored.loss
    weights = {
        "sample_view": loss.sample_weight,
        "class_view": loss.class_weight,
        "balance": loss.balance_weight,
    }
    chosen = choose(history, weights)
    return Outcome("done", epochs, chosen, folder.read_metrics(), source)


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
