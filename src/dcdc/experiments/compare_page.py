"""The methods on one page: a table over all seeds, then one run of each side by side."""

from dataclasses import replace
from pathlib import Path

from dcdc.experiments.chosen_epoch import LAST, METRICS
from dcdc.experiments.compare_tables import MEMORY_NOTE, Rows, figures, has_published
from dcdc.experiments.method_runs import METHOD_FOLDER, MethodRun
from dcdc.experiments.rows import RowResult
from dcdc.experiments.sheet import SPREAD_NOTE
from dcdc.report.compare import ComparedRun, MethodScores, Overview, write_runs
from dcdc.report.facts import read_facts, read_sample
from dcdc.run_folder import RunFolder

_PUBLISHED_NOTE = (
    "The paper does not say of which epoch its own figures are; its authors' code takes the one of "
    "the highest ACC, chosen by labels."
)


def write_page(rows: Rows, title: str, path: Path) -> Path:
    """Of rows of which at least one has finished."""
    sheet = figures(rows)
    notes = [f"{SPREAD_NOTE} {MEMORY_NOTE}"]
    if has_published(rows):
        notes.append(_PUBLISHED_NOTE)
    scored = [_scores(row) for row in rows] if any(row.values(LAST, "acc") for row in rows) else []
    overview = Overview(title, sheet.heads, sheet.marked(), notes, scored, shown="One run of each")
    return write_runs([_one_run(row) for row in rows if row.finished], path, overview)


def _scores(row: RowResult[MethodRun]) -> MethodScores:
    published = {metric: row.published(metric) for metric in METRICS}
    return MethodScores(
        row.row.title,
        {metric: row.values(LAST, metric) for metric in METRICS},
        {metric: value for metric, value in published.items() if value is not None},
    )


def _one_run(row: RowResult[MethodRun]) -> ComparedRun:
    """The first that finished; what its method left of its training comes with it."""
    folder = RunFolder(row.finished[0].run.folder)
    own = RunFolder(folder.path / METHOD_FOLDER)
    facts = replace(read_facts(folder), history=own.read_history())
    sample = read_sample(own) if own.metrics_file.exists() else None
    return ComparedRun(row.row.title, facts, sample)
