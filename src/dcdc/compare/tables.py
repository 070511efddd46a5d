"""The comparison as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from dcdc.compare.rows import MethodResult, MethodRow
from dcdc.metrics.scores import is_highest
from dcdc.reproduce.chosen_epoch import METRICS
from dcdc.reproduce.markdown import SPREAD_NOTE, table_line
from dcdc.reproduce.summary import dotted
from dcdc.runtime.atomic_files import write_text

MEMORY_NOTE = (
    "Time is the method's own, without the reading of images, the mean over seeds. Memory is the "
    "peak of the process that did nothing else, libraries and images included, the largest over "
    "seeds."
)
_FIRST_FIGURE = 2  # after the method and its seeds
_TEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
    }
)


def write_tables(rows: Sequence[MethodRow], title: str, again: str, out: Path) -> list[Path]:
    """compare.md, compare.tex and compare.csv in `out`; `again` is the command."""
    texts = {
        "md": markdown(rows, title, again),
        "tex": latex(rows, title),
        "csv": comma_separated(rows),
    }
    paths = []
    for suffix, text in texts.items():
        paths.append(out / f"compare.{suffix}")
        write_text(paths[-1], text)
    return paths


def heads(rows: Sequence[MethodRow]) -> list[str]:
    return [
        "method",
        "seeds",
        *map(str.upper, METRICS),
        *_paper_heads(rows),
        "time",
        *_memory(rows),
    ]


def cells(row: MethodRow, rows: Sequence[MethodRow]) -> list[str]:
    """In the order of `heads`; a dash for what is not known."""
    ours = [row.figure(metric) for metric in METRICS]
    texts = [row.title, ", ".join(map(str, row.seeds)) or "-"]
    texts += ["-" if figure is None else str(figure) for figure in ours]
    if has_published(rows):
        values = [getattr(row.published, metric, None) for metric in METRICS]
        texts += ["-" if value is None else dotted(value) for value in values]
    texts.append("-" if row.seconds is None else f"{row.seconds:,.1f} s")
    texts.append(_megabytes(row.memory_mb))
    if has_gpu_memory(rows):
        texts.append(_megabytes(row.gpu_memory_mb))
    return texts


def has_published(rows: Sequence[MethodRow]) -> bool:
    return any(row.published is not None for row in rows)


def has_gpu_memory(rows: Sequence[MethodRow]) -> bool:
    return any(row.gpu_memory_mb is not None for row in rows)


def is_best(row: MethodRow, rows: Sequence[MethodRow]) -> list[bool]:
    """In the order of `cells`: whether it is a figure of ours than which none is higher."""
    marks = [False] * len(heads(rows))
    for at, metric in enumerate(METRICS, start=_FIRST_FIGURE):
        means = {each.method: each.figure(metric) for each in rows}
        known = [figure.mean for figure in means.values() if figure is not None]
        own = means[row.method]
        marks[at] = own is not None and is_highest(own.mean, known)
    return marks


def state_text(result: MethodResult) -> str:
    state = "another run" if result.standing.state == "other" else result.standing.state
    return f"{state}; failed: {result.fault}" if result.fault else state


def markdown(rows: Sequence[MethodRow], title: str, again: str) -> str:
    columns = heads(rows)
    lines = [f"## {title}", "", f"{SPREAD_NOTE} {MEMORY_NOTE}", "", f"    {again}", ""]
    lines += [table_line(columns), f"|{'---|' * 2}{'---:|' * (len(columns) - 2)}"]
    lines += [table_line(cells(row, rows)) for row in rows]
    columns = ["method", "seed", "state", "clusters in use", "device", "dcdc", "config"]
    lines += ["", table_line(columns), f"|{'---|' * len(columns)}"]
    lines += [table_line(_run_cells(row, result)) for row in rows for result in row.results]
    return "\n".join(lines) + "\n"


def latex(rows: Sequence[MethodRow], title: str) -> str:
    """A tabular of booktabs; the best of ours is bold."""
    columns = heads(rows)
    lines = [
        f"% {title}. {SPREAD_NOTE}",
        f"\\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}",
        "\\toprule",
        _tex_line(columns),
        "\\midrule",
    ]
    for row in rows:
        texts = [text.translate(_TEX).replace("±", "$\\pm$") for text in cells(row, rows)]
        marked = zip(texts, is_best(row, rows), strict=True)
        told = [f"\\textbf{{{text}}}" if best else text for text, best in marked]
        lines.append(" & ".join(told) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def comma_separated(rows: Sequence[MethodRow]) -> str:
    """Nothing rounded, a column for each figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            *("method", "title", "seeds"),
            *(f"{metric}{part}" for metric in METRICS for part in ("", "_spread", "_published")),
            *("seconds", "peak_memory_mb", "peak_gpu_memory_mb", "devices"),
        ]
    )
    for row in rows:
        figures: list[float | None] = []
        for metric in METRICS:
            figure, published = row.figure(metric), getattr(row.published, metric, None)
            figures += [None, None] if figure is None else [figure.mean, figure.spread]
            figures.append(published)
        seeds = " ".join(map(str, row.seeds))
        memory = [row.memory_mb, row.gpu_memory_mb]
        devices = "; ".join(row.devices)
        writer.writerow([row.method, row.title, seeds, *figures, row.seconds, *memory, devices])
    return text.getvalue()


def _paper_heads(rows: Sequence[MethodRow]) -> list[str]:
    if not has_published(rows):
        return []
    return [f"the paper: {METRICS[0].upper()}", *map(str.upper, METRICS[1:])]


def _memory(rows: Sequence[MethodRow]) -> list[str]:
    return ["memory", "GPU memory"] if has_gpu_memory(rows) else ["memory"]


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} MB"


def _tex_line(texts: Sequence[str]) -> str:
    return " & ".join(text.translate(_TEX) for text in texts) + r" \\"


def _run_cells(row: MethodRow, result: MethodResult) -> list[str]:
    metrics = result.standing.metrics
    texts = [row.title, str(result.run.seed), state_text(result)]
    if not metrics:
        return [*texts, "-", "-", "-", "-"]
    commit = f" ({metrics['commit']})" if metrics.get("commit") else ""
    return [
        *texts,
        f"{metrics['health']['active_clusters']} of {metrics['n_clusters']}",
        str(metrics["device"]),
        f"{metrics['dcdc']}{commit}, torch {metrics['torch']}, scikit-learn "
        f"{metrics['scikit-learn']}",
        f"`{result.run.folder / 'config.json'}`",
    ]
