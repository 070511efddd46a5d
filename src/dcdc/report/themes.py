"""Colours on light and on dark paper.

Okabe and Ito, Color Universal Design, 2008: colours that colour-blind people can tell apart. Of
the two blues and the two oranges, each paper takes the one that stands out from it. For points and
curves of many kinds, ten after Paul Tol, Colour schemes, 2021: his muted and his light ones.
"""

from dataclasses import dataclass


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
