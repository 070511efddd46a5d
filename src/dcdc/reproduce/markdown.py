"""A table as Markdown that goes into a page as it is."""

from collections.abc import Sequence

from dcdc.reproduce.chosen_epoch import CRITERIA, CRITERION_NOTE, METRICS
from dcdc.reproduce.paper import TITLES
from dcdc.reproduce.runs import command
from dcdc.reproduce.summary import Result, RowResult, cells
from dcdc.reproduce.tables import Table

SPREAD_NOTE = "± is the standard deviation over seeds (n - 1)."


def markdown(table: Table, rows: Sequence[RowResult], settings: str) -> str:
    """`settings`: what every run has besides its row's own, if anything."""
    text = [
        f"## {table.title} (the paper's table {table.number})",
        "",
        f"{CRITERION_NOTE} {SPREAD_NOTE} A dash stands for what was not run, or not published.",
    ]
    if settings:
        text += ["", f"Every run with {settings}."]
    text += ["", *_figures(rows), "", *_runs(rows)]
    return "\n".join(text) + "\n"


def titles() -> list[str]:
    """Of the groups' columns; the first of a group names it."""
    groups = [*CRITERIA.values(), "the paper"]
    named = [[f"{group}: {METRICS[0].upper()}", *map(str.upper, METRICS[1:])] for group in groups]
    return [title for group in named for title in group]


def _figures(rows: Sequence[RowResult]) -> list[str]:
    heads = ["data set", "run", "seeds", "epochs", *titles(), "training"]
    lines = [table_line(heads), f"|{'---|' * 4}{'---:|' * (len(heads) - 4)}"]
    for row in rows:
        seconds = "-" if row.seconds is None else f"{row.seconds:,.0f} s"
        told = [TITLES[row.row.dataset], row.row.title, row.seeds, row.epochs]
        lines.append(table_line([*told, *cells(row), seconds]))
    return lines


def _runs(rows: Sequence[RowResult]) -> list[str]:
    heads = ["data set", "run", "seed", "state", "device", "dcdc", "config", "command"]
    lines = [table_line(heads), f"|{'---|' * len(heads)}"]
    lines += [
        table_line([TITLES[row.row.dataset], row.row.title, *_run_cells(result)])
        for row in rows
        for result in row.results
    ]
    return lines


def _run_cells(result: Result) -> list[str]:
    run, outcome = result.run, result.outcome
    is_known = outcome.state in ("begun", "done")
    return [
        str(run.config.train.seed),
        state_text(result),
        str(outcome.metrics.get("device", "-")),
        version_text(result),
        f"`{result.folder / 'config.json'}`" if is_known else "-",
        f"`{command(run, source=outcome.source)}`",
    ]


def state_text(result: Result) -> str:
    """done, missing, begun with its epochs; and a fault, if there was one."""
    state: str = result.outcome.state
    if result.outcome.longer is not None:
        state = f"the first epochs of {result.outcome.longer.name}"
    if state == "begun":
        state = f"begun, at {result.outcome.epochs} of {result.run.epochs} epochs"
    if state == "other":
        state = "another run"
    return f"{state}; failed: {result.fault}" if result.fault else state


def version_text(result: Result) -> str:
    metrics = result.outcome.metrics
    if not metrics:
        return "-"
    commit = f" ({metrics['commit']})" if metrics.get("commit") else ""
    return f"{metrics['dcdc']}{commit}, torch {metrics['torch']}"


def table_line(parts: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(part.replace('|', chr(92) + '|') for part in parts)} |"
