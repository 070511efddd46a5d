"""The comparison as Markdown, LaTeX, CSV and a page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcdc.experiments.chosen_epoch import LAST, METRICS
from dcdc.experiments.method_runs import METHOD_FOLDER, MethodRun
from dcdc.experiments.paper import TRAINED_FOR
from dcdc.experiments.rows import Result, RowResult, all_results, or_dash
from dcdc.experiments.sheet import SPREAD_NOTE, Sheet, group_heads, run_cells, write_files
from dcdc.metrics.health import collapse
from dcdc.metrics.scores import is_highest
from dcdc.report.compare import Overview, write_runs
from dcdc.report.compared_runs import ComparedRun
from dcdc.report.disagreement import ShownImages
from dcdc.report.facts import read_facts, read_sample
from dcdc.report.method_figures import MethodScores
from dcdc.run_folder import RunFolder
from dcdc.runtime.csv_text import csv_lines

Rows = Sequence[RowResult[MethodRun]]
_MEMORY_NOTE = (
    "Time is the method's own, without the reading of images, the mean over seeds. Memory is the "
    "peak of the process that did nothing else, libraries and images included, the largest over "
    "seeds."
)
_PUBLISHED_NOTE = (
    "The paper does not say of which epoch its own figures are; its authors' code takes the one of "
    "the highest ACC, chosen by labels."
)
_MEMORY = {"peak_memory_mb": "memory", "peak_gpu_memory_mb": "GPU memory"}


def write_tables(rows: Rows, title: str, again: str, out: Path) -> list[Path]:
    """compare.md, compare.tex and compare.csv in `out`; `again` is the command."""
    texts = {
        "md": markdown(rows, title, again),
        "tex": latex(rows, title),
        "csv": comma_separated(rows),
    }
    return write_files(out, "compare", texts)


def figures(rows: Rows) -> Sheet:
    """Published ones, memory of a GPU, and remarks only where there are any."""
    published = _has_published(rows)
    has_gpu = any(row.largest("peak_gpu_memory_mb") is not None for row in rows)
    memory = _MEMORY if has_gpu else {"peak_memory_mb": "memory"}
    remarks = [remark(row) for row in rows]
    heads = ["method", "seeds", *map(str.upper, METRICS)]
    heads += [*group_heads("published"), "trained for"] if published else []
    heads += ["epochs", "time", *memory.values()]
    return Sheet(
        [*heads, *(["remark"] if any(remarks) else [])],
        [
            [
                *(row.row.title, row.seeds_text, *row.cells(LAST)),
                *((*row.published_cells(), _trained_for(row)) if published else ()),
                or_dash(row.largest("epochs"), "{:,.0f}"),
                or_dash(row.seconds, "{:,.1f} s"),
                *(or_dash(row.largest(key), "{:,.0f} MB") for key in memory),
                *([told] if any(remarks) else []),
            ]
            for row, told in zip(rows, remarks, strict=True)
        ],
        n_words=2,
        best=_best(rows),
    )


def remark(row: RowResult[MethodRun]) -> str:
    """Which of its runs failed, or have clusters that are not in use."""
    told = []
    for result in row.results:
        metrics = result.standing.metrics
        fault = collapse(metrics["health"]["sizes"]) if metrics else ""
        fault = "failed" if result.fault else fault
        if fault:
            told.append(f"{fault} (seed {result.run.seed})" if len(row.results) > 1 else fault)
    return "; ".join(told)


def _trained_for(row: RowResult[MethodRun]) -> str:
    """How long the method was trained for its published figures, where that is known."""
    if row.row.published is None:
        return "-"
    return TRAINED_FOR.get(row.results[0].run.method, "-")


def _has_published(rows: Rows) -> bool:
    return any(row.row.published is not None for row in rows)


def markdown(rows: Rows, title: str, again: str) -> str:
    lines = [f"## {title}", "", f"{SPREAD_NOTE} {_MEMORY_NOTE}", "", f"    {again}", ""]
    heads = ["method", "seed", "state", "clusters in use", "device", "dcdc", "config"]
    runs = Sheet(heads, [_run_cells(result) for result in all_results(rows)], len(heads))
    return "\n".join([*lines, *figures(rows).markdown(), "", *runs.markdown()]) + "\n"


def latex(rows: Rows, title: str) -> str:
    return "\n".join([f"% {title}. {SPREAD_NOTE}", *figures(rows).latex()]) + "\n"


def comma_separated(rows: Rows) -> str:
    """Nothing rounded, a column for each figure."""
    lines: list[Sequence[Any]] = [
        [
            *("method", "title", "seeds"),
            *(f"{metric}{part}" for metric in METRICS for part in ("", "_spread", "_published")),
            *("seconds", *_MEMORY, "devices", "features"),
        ]
    ]
    for row in rows:
        scores: list[float | None] = []
        for metric in METRICS:
            figure, published = row.figure(LAST, metric), row.published(metric)
            scores += [None, None] if figure is None else [figure.mean, figure.spread]
            scores.append(published)
        method, seeds = row.results[0].run.method, " ".join(map(str, row.seeds))
        memory = map(row.largest, _MEMORY)
        devices = "; ".join(dict.fromkeys(r.standing.metrics["device"] for r in row.finished))
        features = row.results[0].run.task.features
        told = "" if features is None else features.told
        figures = (*scores, row.seconds, *memory, devices, told)
        lines.append([method, row.row.title, seeds, *figures])
    return csv_lines(lines)


def _best(rows: Rows) -> frozenset[tuple[int, int]]:
    """Ours alone, never published ones."""
    found = set()
    for column, metric in enumerate(METRICS, start=2):  # after the method and its seeds
        known = {
            at: figure.mean for at, row in enumerate(rows) if (figure := row.figure(LAST, metric))
        }
        found |= {(at, column) for at, mean in known.items() if is_highest(mean, known.values())}
    return frozenset(found)


def _run_cells(result: Result[MethodRun]) -> list[str]:
    metrics = result.standing.metrics
    used = f"{metrics['health']['active_clusters']} of {metrics['n_clusters']}" if metrics else "-"
    return [result.run.row.title, *run_cells(result, used)]


def write_page(rows: Rows, title: str, path: Path, images: ShownImages | None = None) -> Path:
    """Of rows of which at least one has finished; `images` are some of the set's."""
    sheet = figures(rows)
    notes = [f"{SPREAD_NOTE} {_MEMORY_NOTE}"]
    if _has_published(rows):
        notes.append(_PUBLISHED_NOTE)
    scored = [_scores(row) for row in rows] if any(row.values(LAST, "acc") for row in rows) else []
    overview = Overview(
        *(title, sheet.heads, sheet.marked(), notes, scored),
        runs="One run of each",
        has_their_scores=all(len(row.finished) < 2 for row in rows),
        faults=[
            f"{each.run.folder.name} failed: {each.fault}"
            for each in all_results(rows)
            if each.fault
        ],
        images=images,
    )
    return write_runs([_one_run(row) for row in rows if row.finished], path, overview)


def _scores(row: RowResult[MethodRun]) -> MethodScores:
    published = {metric: row.published(metric) for metric in METRICS}
    return MethodScores(
        row.row.title,
        {metric: row.values(LAST, metric) for metric in METRICS},
        {metric: value for metric, value in published.items() if value is not None},
        row.seconds,
    )


def _one_run(row: RowResult[MethodRun]) -> ComparedRun:
    """The first that finished; what its method left of its training comes with it."""
    folder = RunFolder(row.finished[0].run.folder)
    own = RunFolder(folder.path / METHOD_FOLDER)
    facts = read_facts(folder)
    facts = replace(facts, history=own.read_history() or facts.history)
    sample = read_sample(own) if own.metrics_file.exists() else None
    return ComparedRun(row.row.title, facts, sample)
