"""The methods on one page: a table over all seeds, then one run of each side by side."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dcdc.compare.rows import MethodRow
from dcdc.compare.runs import METHOD_FOLDER
from dcdc.compare.tables import MEMORY_NOTE, cells, has_published, heads, is_best
from dcdc.report.compare import ComparedRun, Overview, write_runs
from dcdc.report.facts import read_facts
from dcdc.report.methods_figure import MethodScores
from dcdc.report.sample import read_sample
from dcdc.reproduce.chosen_epoch import METRICS
from dcdc.reproduce.markdown import SPREAD_NOTE
from dcdc.run_folder import RunFolder

_PUBLISHED_NOTE = (
    "The paper does not say of which epoch its own figures are; its authors' code takes the one of "
    "the highest ACC, chosen by labels."
)


def write_page(rows: Sequence[MethodRow], title: str, path: Path) -> Path:
    """Of rows of which at least one has finished."""
    runs = [_one_run(row) for row in rows if row.finished]
    return write_runs(runs, path, _overview(rows, title))


def _overview(rows: Sequence[MethodRow], title: str) -> Overview:
    texts = [list(zip(cells(row, rows), is_best(row, rows), strict=True)) for row in rows]
    notes = [f"{SPREAD_NOTE} {MEMORY_NOTE}"]
    if has_published(rows):
        notes.append(_PUBLISHED_NOTE)
    scored = [_scores(row) for row in rows] if any(row.figure("acc") for row in rows) else []
    return Overview(title, heads(rows), texts, notes, scored, shown="One run of each")


def _scores(row: MethodRow) -> MethodScores:
    published = {metric: getattr(row.published, metric, None) for metric in METRICS}
    return MethodScores(
        row.title,
        {metric: row.values(metric) for metric in METRICS},
        {metric: value for metric, value in published.items() if value is not None},
    )


def _one_run(row: MethodRow) -> ComparedRun:
    """The first that finished; what its method left of its training comes with it."""
    folder = RunFolder(row.finished[0].run.folder)
    own = RunFolder(folder.path / METHOD_FOLDER)
    facts = replace(read_facts(folder), history=own.read_history())
    sample = read_sample(own) if own.metrics_file.exists() else None
    return ComparedRun(row.title, facts, sample)
