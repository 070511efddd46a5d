"""Figures as files for papers, and as pictures inside the page."""

import base64
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dcdc.report.theme import DARK, LIGHT, Theme, drawing_with
from dcdc.runtime.atomic_files import atomic_file

DPI = 150
_WIDE = 9.0  # inches

Draw = Callable[[Theme], Figure]


@dataclass(frozen=True)
class Picture:
    """A figure's data URIs, one for each colour scheme."""

    light: str
    dark: str
    wide: bool  # too wide for its labels to be read on a narrow screen


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
    _lay_out(figure)
    # Without a date the same run gives the same file.
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A class name in a script that the font lacks is drawn as boxes: no cause for noise.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()
