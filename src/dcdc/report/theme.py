"""The look of figures and page, on light and on dark paper.

Okabe and Ito, Color Universal Design, 2008: colours that colour-blind people can tell apart. Of
the two blues and the two oranges, each paper takes the one that stands out from it. For points and
curves of many kinds, ten after Paul Tol, Colour schemes, 2021: his muted and his light ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl


@dataclass(frozen=True)
class Theme:
    paper: str
    ink: str
    muted: str
    line: str
    colours: tuple[str, ...]
    many_colours: tuple[str, ...]


LIGHT = Theme(
    paper="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    line="#d5dae0",
    colours=("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    many_colours=(
        *("#332288", "#CC6677", "#117733", "#DDAA33", "#88CCEE"),
        *("#AA4499", "#44AA99", "#882255", "#999933", "#1b1f24"),
    ),
)
DARK = Theme(
    paper="#1c2026",
    ink="#e6e9ed",
    muted="#a3adb8",
    line="#3a414b",
    colours=("#56B4E9", "#E69F00", "#009E73", "#CC79A7"),
    many_colours=(
        *("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB"),
        *("#BBCC33", "#99DDFF", "#AAAA00", "#CC79A7", "#e6e9ed"),
    ),
)


@contextmanager
def drawing_with(theme: Theme) -> Iterator[None]:
    """Draw and save inside: a person's own matplotlib settings do not leak in, ours not out."""
    # The backend is process-wide; figures made without pyplot never ask for it.
    defaults: dict[Any, Any] = {
        key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"
    }
    look: dict[Any, Any] = {
        "axes.edgecolor": theme.muted,
        "axes.facecolor": theme.paper,
        "axes.labelcolor": theme.ink,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": theme.paper,
        "grid.color": theme.line,
        "legend.frameon": False,
        "svg.hashsalt": "dcdc",  # the same run gives the same file
        "text.color": theme.ink,
        "text.parse_math": False,  # a class may be called "$5_bill$"
        "xtick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.color": theme.muted,
        "ytick.labelcolor": theme.ink,
    }
    with mpl.rc_context(defaults | look):
        yield
