"""A table of the paper as Markdown that goes into a page as it is, and as JSON, nothing rounded."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dcdc.experiments.chosen_epoch import CRITERIA, CRITERION_NOTE, METRICS, EpochScores
from dcdc.experiments.paper import TITLES, Table
from dcdc.experiments.recipe_runs import Options, RecipeRun, file_stem, settings_text
from dcdc.experiments.rows import Result, RowResult, all_results, or_dash
from dcdc.experiments.sheet import SPREAD_NOTE, Sheet, group_heads, run_cells, write_files

Rows = Sequence[RowResult[RecipeRun]]
_FROM_METRICS = ("training_seconds", "device", "torch", "dcdc", "commit", "n_images")


def write_table(table: Table, rows: Rows, options: Options) -> list[Path]:
    """TABLE.md and TABLE.json in the out folder."""
    settings = settings_text(table, options)
    data = json.dumps(record(table, rows, settings), indent=2, ensure_ascii=False) + "\n"
    texts = {"md": markdown(table, rows, settings), "json": data}
    return write_files(options.out, file_stem(table, options), texts)


def figures(rows: Rows) -> Sheet:
    """Ours by criterion and metric, then the paper's."""
    groups = [head for group in (*CRITERIA.values(), "the paper") for head in group_heads(group)]
    return Sheet(
        ["data set", "run", "seeds", "epochs", *groups, "training"],
        [
            [
                *(TITLES[row.row.dataset], row.row.title, row.seeds_text, _epochs(row)),
                *(text for criterion in CRITERIA for text in row.cells(criterion)),
                *row.published_cells(),
                or_dash(row.seconds, "{:,.0f} s"),
            ]
            for row in rows
        ],
        n_words=4,
    )


def epochs_text(done: int, full: int) -> str:
    """Of a run that was meant to be shorter, or longer, than its preset: both."""
    if done == full:
        return str(done)
    return f"{done} of {full} epochs" if done < full else f"{done} instead of {full} epochs"


def markdown(table: Table, rows: Rows, settings: str) -> str:
    """`settings`: what every run has besides its row's own, if anything."""
    text = [
        f"## {table.title} (the paper's table {table.number})",
        "",
        f"{CRITERION_NOTE} {SPREAD_NOTE} A dash: not run, or not published.",
    ]
    if settings:
        text += ["", f"Every run with {settings}."]
    heads = ["data set", "run", "seed", "state", "device", "dcdc", "config", "command"]
    runs = Sheet(heads, [_run_cells(result) for result in all_results(rows)], len(heads))
    return "\n".join([*text, "", *figures(rows).markdown(), "", *runs.markdown()]) + "\n"


def record(table: Table, rows: Rows, settings: str) -> dict[str, Any]:
    return {
        "table": table.name,
        "paper_table": table.number,
        "title": table.title,
        "criteria": CRITERION_NOTE,
        "settings": settings,
        "rows": [_row(row) for row in rows],
    }


def _epochs(row: RowResult[RecipeRun]) -> str:
    if not row.finished:
        return "-"
    first = row.finished[0]
    return epochs_text(first.standing.epochs, first.run.full_epochs)


def _run_cells(result: Result[RecipeRun]) -> list[str]:
    row, command = result.run.row, result.run.command(source=result.standing.source)
    return [TITLES[row.dataset], row.title, *run_cells(result), f"`{command}`"]


def _row(result: RowResult[RecipeRun]) -> dict[str, Any]:
    row = result.results[0].run.row
    return {
        "dataset": row.dataset,
        "title": row.title,
        "preset": row.preset,
        "paper": None if row.published is None else asdict(row.published),
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


def _run(result: Result[RecipeRun]) -> dict[str, Any]:
    run, standing = result.run, result.standing
    return {
        "seed": run.seed,
        "state": standing.state,
        "fault": result.fault or None,
        "epochs": standing.epochs,
        "is_beginning_of_longer": standing.longer is not None,
        "epochs_wanted": run.epochs,
        "epochs_of_preset": run.full_epochs,
        "changes": run.changes(),
        "chosen": {name: _epoch(epoch) for name, epoch in standing.chosen.items()},
        **{key: standing.metrics.get(key) for key in _FROM_METRICS},
        "source": standing.source or None,
        "folder": str(result.folder),
        "config": str(result.folder / "config.json"),
        "command": run.command(source=standing.source),
    }


def _epoch(chosen: EpochScores | None) -> dict[str, Any] | None:
    return None if chosen is None else {"epoch": chosen.epoch, **chosen.scores}
