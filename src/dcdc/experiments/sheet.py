"""A table in words, and how it is written: Markdown and LaTeX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcdc.experiments.chosen_epoch import METRICS
from dcdc.experiments.rows import Result
from dcdc.runtime.atomic_files import write_text

SPREAD_NOTE = "± is the standard deviation over seeds (n - 1)."
_TEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Sheet:
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_words: int
    """Columns that hold words, from the left; the others hold figures."""
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each figure that no other of its column exceeds."""

    def marked(self) -> list[list[tuple[str, bool]]]:
        """Every cell, and whether it is the best of its column."""
        return [
            [(text, (at, column) in self.best) for column, text in enumerate(row)]
            for at, row in enumerate(self.rows)
        ]

    def markdown(self) -> list[str]:
        alignment = "---|" * self.n_words + "---:|" * (len(self.heads) - self.n_words)
        return [_markdown_line(self.heads), f"|{alignment}", *map(_markdown_line, self.rows)]

    def latex(self) -> list[str]:
        """A tabular of booktabs; the best figures are bold."""
        alignment = "l" * self.n_words + "r" * (len(self.heads) - self.n_words)
        lines = [f"\\begin{{tabular}}{{{alignment}}}", "\\toprule"]
        lines += [_latex_line([(head, False) for head in self.heads]), "\\midrule"]
        lines += map(_latex_line, self.marked())
        return [*lines, "\\bottomrule", "\\end{tabular}"]


def write_files(folder: Path, stem: str, texts: Mapping[str, str]) -> list[Path]:
    """A file for each suffix."""
    paths = [folder / f"{stem}.{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths


def group_heads(group: str) -> list[str]:
    """The first column of a group names it."""
    return [f"{group}: {METRICS[0].upper()}", *map(str.upper, METRICS[1:])]


def state_text(result: Result[Any]) -> str:
    """done, missing, begun with its epochs; and a fault, if there was one."""
    standing, epochs = result.standing, result.run.epochs
    state: str = standing.state
    if standing.longer is not None:
        state = f"the first epochs of {standing.longer.name}"
    if state == "begun" and epochs is not None:
        state = f"begun, at {standing.epochs} of {epochs} epochs"
    if state == "other":
        state = "another run"
    return f"{state}; failed: {result.fault}" if result.fault else state


def run_cells(result: Result[Any], *between: str) -> list[str]:
    """Seed and state, then `between`, then device, versions and config as far as they are known."""
    standing = result.standing
    is_known = standing.state in ("begun", "done")
    return [
        *(str(result.run.seed), state_text(result), *between),
        str(standing.metrics.get("device", "-")),
        _version_text(result),
        f"`{result.folder / 'config.json'}`" if is_known else "-",
    ]


def _version_text(result: Result[Any]) -> str:
    metrics = result.standing.metrics
    if not metrics:
        return "-"
    commit = f" ({metrics['commit']})" if metrics.get("commit") else ""
    others = [f"{name} {metrics[name]}" for name in ("torch", "scikit-learn") if name in metrics]
    return ", ".join([f"{metrics['dcdc']}{commit}", *others])


def _markdown_line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


def _latex_line(cells: Sequence[tuple[str, bool]]) -> str:
    escaped = [(text.translate(_TEX), best) for text, best in cells]
    return " & ".join(f"\\textbf{{{text}}}" if best else text for text, best in escaped) + r" \\"
