"""Figures: as files for papers, and as pictures inside the page, on light and on dark paper."""

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dcdc.printable import shown
from dcdc.report.themes import DARK, LIGHT, Theme
from dcdc.runtime.atomic_files import atomic_file

DPI = 150
FEW_DOTS = 40  # up to here each point of a curve gets a dot; one alone would draw no line
ROUND_STEPS = [1, 2, 5, 10]  # between ticks
# A class may be called so.
_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_WIDE = 9.0  # inches, of a figure


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


Draw = Callable[[Theme], Figure]


@dataclass(frozen=True)
class Picture:
    """A figure's data URIs, one for each colour scheme."""

    light: str
    dark: str
    wide: bool  # too wide for its labels to be read on a narrow screen


def legend_above(axes: Axes, n_columns: int, *given: Any) -> None:
    """Above the axes, where no curve can pass behind it; `given`: handles and labels."""
    axes.legend(
        *given,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=n_columns,
        fontsize=9,
        borderaxespad=0.2,
    )


def write_figure(draw: Draw, folder: Path, stem: str) -> bytes:
    """`stem.png` and `stem.svg`, on light paper; gives back the SVG."""
    with drawing_with(LIGHT):
        figure = draw(LIGHT)
        svg = _encoded(figure, "svg")
        png = _encoded(figure, "png")
    for suffix, content in (("png", png), ("svg", svg)):
        with atomic_file(folder / f"{stem}.{suffix}") as temporary:
            temporary.write_bytes(content)
    return svg


def write_picture(draw: Draw, folder: Path, stem: str) -> Picture:
    """Writes the figure's files and draws it once more for dark screens."""
    return _picture(draw, write_figure(draw, folder, stem))


def draw_picture(draw: Draw) -> Picture:
    """For a page alone, without files."""
    with drawing_with(LIGHT):
        light = _encoded(draw(LIGHT), "svg")
    return _picture(draw, light)


def data_uri(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def _picture(draw: Draw, light: bytes) -> Picture:
    with drawing_with(DARK):
        figure = draw(DARK)
        dark = _encoded(figure, "svg")
    wide = bool(figure.get_figwidth() > _WIDE)
    return Picture(data_uri(light, "image/svg+xml"), data_uri(dark, "image/svg+xml"), wide)


def _lay_out(figure: Figure) -> None:
    """Once and for all: whoever saves a figure that has an engine draws it twice each time."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def _encoded(figure: Figure, kind: str) -> bytes:
    # Without a date the same run gives the same file.
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A class name in a script that the font lacks is drawn as boxes: no cause for noise.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        _lay_out(figure)
        figure.savefig(buffer, format=kind, dpi=max(DPI, figure.dpi), metadata=metadata)
    content = buffer.getvalue()
    return _NOT_IN_XML.sub(_written_out, content) if kind == "svg" else content


def _written_out(found: re.Match[bytes]) -> bytes:
    return shown(found[0].decode()).encode("ascii", "backslashreplace")
