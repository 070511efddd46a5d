"""The gallery for print: a row of images for each cluster."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dcdc.data.mapped import gather_rows
from dcdc.report.clusters import ClusterFacts
from dcdc.report.figure_files import DPI
from dcdc.report.gallery import (
    PER_CLUSTER,
    SIDE,
    gallery_heading,
    shown_clusters,
    tile,
    typical_images,
)
from dcdc.report.theme import Theme

# All lengths in pixels at DPI: every tile falls on whole pixels and stays sharp.
_GAP, _ROW_GAP = 6, 18
_LEFT, _TOP, _MARGIN = 200, 60, 20
_LINE = 23


def draw_gallery(clusters: list[ClusterFacts], images: NDArray[np.uint8], theme: Theme) -> Figure:
    """`images` (N x H x W x C) in the order of the run's assignments."""
    rows = shown_clusters(clusters)
    canvas = _montage(rows, images, theme)
    height, width = canvas.shape[:2]
    total_width, total_height = _LEFT + width + _MARGIN, _TOP + height + _MARGIN
    figure = Figure(figsize=(total_width / DPI, total_height / DPI), dpi=DPI)
    axes = figure.add_axes(
        (_LEFT / total_width, _MARGIN / total_height, width / total_width, height / total_height)
    )
    axes.imshow(canvas, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    figure.text(
        _MARGIN / total_width,
        1 - _TOP / 2 / total_height,
        gallery_heading(clusters),
        va="center",
        fontsize=8.5,
    )
    for row, cluster in enumerate(rows):
        lines = [f"{cluster.size:,} images", f"confidence {cluster.mean_confidence:.2f}"]
        if cluster.purity is not None:
            lines.append(f"purity {cluster.purity:.2f}")
        top = row * (SIDE + _ROW_GAP) + (SIDE - _LINE * (len(lines) + 1)) / 2
        axes.text(
            -14,
            top,
            f"cluster {cluster.number}",
            ha="right",
            va="top",
            fontsize=9,
            fontweight="bold",
        )
        for position, line in enumerate(lines, start=1):
            axes.text(
                -14,
                top + position * _LINE,
                line,
                ha="right",
                va="top",
                fontsize=8.5,
                color=theme.muted,
            )
    return figure


def _montage(
    rows: list[ClusterFacts], images: NDArray[np.uint8], theme: Theme
) -> NDArray[np.uint8]:
    # One picture for all: an axes for each image would take matplotlib many seconds.
    height = len(rows) * (SIDE + _ROW_GAP) - _ROW_GAP
    width = PER_CLUSTER * (SIDE + _GAP) - _GAP
    paper = np.rint(np.array(to_rgb(theme.paper)) * 255).astype(np.uint8)
    canvas = np.tile(paper, (height, width, 1))
    for row, cluster in enumerate(rows):
        top = row * (SIDE + _ROW_GAP)
        for column, image in enumerate(gather_rows(images, np.array(typical_images(cluster)))):
            left = column * (SIDE + _GAP)
            canvas[top : top + SIDE, left : left + SIDE] = tile(image)
    return canvas
