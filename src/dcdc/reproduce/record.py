"""A table as JSON: every run, every figure, nothing rounded."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dcdc.presets import preset
from dcdc.reproduce.chosen_epoch import CRITERIA, CRITERION_NOTE, METRICS, EpochScores
from dcdc.reproduce.markdown import markdown
from dcdc.reproduce.run_names import changes
from dcdc.reproduce.runs import Options, Run, command, file_stem, settings_text
from dcdc.reproduce.summary import Result, RowResult
from dcdc.reproduce.tables import Table
from dcdc.runtime.atomic_files import write_text

_FROM_METRICS = ("training_seconds", "device", "torch", "dcdc", "commit", "n_images")


def write_table(table: Table, rows: Sequence[RowResult], options: Options) -> tuple[Path, Path]:
    """TABLE.md and TABLE.json in the out folder."""
    settings = settings_text(table, options)
    stem = options.out / file_stem(table, options)
    page, data = stem.with_name(f"{stem.name}.md"), stem.with_name(f"{stem.name}.json")
    write_text(page, markdown(table, rows, settings))
    text = json.dumps(record(table, rows, settings), indent=2, ensure_ascii=False)
    write_text(data, text + "\n")
    return page, data


def record(table: Table, rows: Sequence[RowResult], settings: str) -> dict[str, Any]:
    return {
        "table": table.name,
        "paper_table": table.number,
        "title": table.title,
        "criteria": CRITERION_NOTE,
        "settings": settings,
        "rows": [_row(row) for row in rows],
    }


def _row(result: RowResult) -> dict[str, Any]:
    row = result.row
    return {
        "dataset": row.dataset,
        "title": row.title,
        "preset": row.preset,
        "paper": asdict(row.published),
        "ours": {
            criterion: {
                metric: None if figure is None else asdict(figure)
                for metric in METRICS
                for figure in [result.figure(criterion, metric)]
            }
            for criterion in CRITERIA
        },
        "runs": [_run(each) for each in result.results],
    }


def _run(result: Result) -> dict[str, Any]:
    run, outcome = result.run, result.outcome
    return {
        "seed": run.config.train.seed,
        "state": outcome.state,
        "fault": result.fault or None,
        "epochs": outcome.epochs,
        "is_beginning_of_longer": outcome.longer is not None,
        "epochs_wanted": run.epochs,
        "epochs_of_preset": run.full_epochs,
        "changes": _told(run),
        "chosen": {name: _epoch(epoch) for name, epoch in outcome.chosen.items()},
        **{key: outcome.metrics.get(key) for key in _FROM_METRICS},
        "source": outcome.source or None,
        "folder": str(result.folder),
        "config": str(result.folder / "config.json"),
        "command": command(run, source=outcome.source),
    }


def _told(run: Run) -> Mapping[str, Any]:
    """What differs from the preset; the source is told by itself."""
    found = changes(run.config, preset(run.preset))
    return {key: value for key, value in found.items() if key != "data.source"}


def _epoch(chosen: EpochScores | None) -> dict[str, Any] | None:
    return None if chosen is None else {"epoch": chosen.epoch, **chosen.scores}
