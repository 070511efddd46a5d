"""Which images represent a cluster, how many clusters get shown, and the gallery for print.

Shapes: H = W pixels a side, C channels (1 or 3).
"""

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from dcdc.data.mapped import gather_rows
from dcdc.data.pictures import Pictures
from dcdc.printable import counted
from dcdc.report.facts import ClusterFacts, RunFacts
from dcdc.report.figures import DPI, data_uri
from dcdc.report.sheet import as_picture, encode
from dcdc.report.themes import Theme

MAX_CLUSTERS = 30
BY_CHANCE = 10
PER_CLUSTER = 8
UNCERTAIN_PER_CLUSTER = 6
UNCERTAIN = OUTLIERS = 24  # of the whole set
# Of each cluster beyond MAX_CLUSTERS, smaller and by script.
LATER_BY_CHANCE, LATER, LATER_UNCERTAIN = 5, 4, 3
SIDE = 96  # pixels; larger images are made smaller
PRINT_SIDE = 192  # where the images have so many
_IN_PRINT = 6  # of each kind
# All lengths in pixels at DPI: every tile falls on whole pixels and stays sharp.
_GAP, _ROW_GAP = 6, 18
_LEFT, _TOP, _MARGIN = 200, 60, 20
_LINE = 23


def shown_clusters(clusters: list[ClusterFacts]) -> list[ClusterFacts]:
    """The largest ones that have images."""
    return [cluster for cluster in clusters if cluster.size][:MAX_CLUSTERS]


def random_images(cluster: ClusterFacts, seed: int, n_most: int = BY_CHANCE) -> list[int]:
    """Positions of some of its images, each as likely as any other: what it is like as a whole."""
    random = np.random.default_rng([seed, cluster.number])
    n_drawn = min(n_most, cluster.size)
    return [int(position) for position in random.choice(cluster.members, n_drawn, replace=False)]


def typical_images(cluster: ClusterFacts, n_most: int = PER_CLUSTER) -> list[int]:
    """Positions of the images it is surest of."""
    return [int(position) for position in cluster.members[:n_most]]


def least_certain_images(
    cluster: ClusterFacts,
    certainty: NDArray[np.float64],
    n_most: int = UNCERTAIN_PER_CLUSTER,
    n_typical: int = PER_CLUSTER,
) -> list[int]:
    """Positions of the images it nearly lost, the nearest first; none that is shown as typical."""
    rest = cluster.members[n_typical:]
    order = np.argsort(certainty[rest], kind="stable")[:n_most]
    return [int(position) for position in rest[order]]


def once(positions: list[int], images: Pictures | None, n_most: int) -> list[int]:
    """The first of them that show different pixels: copies of one image tell nothing new. Files are
    not read for it."""
    if not isinstance(images, np.ndarray) or not positions:
        return positions[:n_most]
    seen: dict[bytes, int] = {}
    for position, image in zip(positions, gather_rows(images, np.array(positions)), strict=True):
        seen.setdefault(image.tobytes(), position)
    return list(seen.values())[:n_most]


def most_uncertain_images(facts: RunFacts, n_most: int = UNCERTAIN) -> list[int]:
    """Positions of the images of the whole set whose cluster is least clear."""
    order = np.argsort(facts.certainty, kind="stable")
    return [int(position) for position in order[facts.is_inside[order]][:n_most]]


def outliers_to_show(facts: RunFacts) -> list[int]:
    """Positions of images that belong to no cluster, spread evenly over the set."""
    found = facts.outliers
    step = max(1, -(-len(found) // OUTLIERS))
    return [int(position) for position in found[::step]]


def gallery_heading(clusters: list[ClusterFacts]) -> str:
    """What the gallery shows and what it leaves out."""
    n_in_use = sum(cluster.size > 0 for cluster in clusters)
    n_empty = len(clusters) - n_in_use
    heading = f"{_IN_PRINT} images of each cluster by chance, then the {_IN_PRINT} it is surest of."
    if n_in_use > MAX_CLUSTERS:
        heading += f" The {MAX_CLUSTERS} largest of {n_in_use} clusters are shown."
    if n_empty:
        heading += (
            f" {n_empty} of {len(clusters)} clusters {'is' if n_empty == 1 else 'are'} empty."
        )
    return heading


def is_coarse(side: int) -> bool:
    """Whether pixels should stay sharp squares when the image is made larger."""
    return side < SIDE // 2


def thumbnail_uri(image: NDArray[np.uint8], side: int = SIDE) -> str:
    """An image (H x W x C) at its own size, or at `side` if it is larger."""
    picture = as_picture(image)
    if picture.width > side:
        picture = picture.resize((side, side), Image.Resampling.LANCZOS)
    # Less than half of a photograph's PNG.
    quality = None if is_coarse(picture.width) else 85
    return data_uri(*encode(picture, quality))


def tile(image: NDArray[np.uint8], side: int = SIDE) -> NDArray[np.uint8]:
    """An image (H x W x C) at `side` x `side` x 3."""
    picture = as_picture(image).convert("RGB")
    coarse = picture.width < side // 2
    method = Image.Resampling.NEAREST if coarse else Image.Resampling.LANCZOS
    return np.asarray(picture.resize((side, side), method))


Chosen = list[tuple[ClusterFacts, list[list[int]]]]
"""Clusters, and positions of their images: by chance, and the surest."""


def printed_images(clusters: list[ClusterFacts], images: Pictures, seed: int) -> Chosen:
    """`images`: of the run's assignments in their order."""
    found = []
    for cluster in shown_clusters(clusters):
        kinds = (
            random_images(cluster, seed, 2 * _IN_PRINT),
            typical_images(cluster, 2 * _IN_PRINT),
        )
        found.append((cluster, [once(kind, images, _IN_PRINT) for kind in kinds]))
    return found


def draw_gallery(
    clusters: list[ClusterFacts], chosen: Chosen, images: Pictures, theme: Theme
) -> Figure:
    """`images` (N x H x W x C) in the order of the run's assignments. Larger ones have more dots to
    the inch, on paper of the same size."""
    rows = [cluster for cluster, _ in chosen]
    fine = 2 if images.shape[1] > SIDE else 1
    canvas = _montage(chosen, images, theme, fine)
    height, width = (length // fine for length in canvas.shape[:2])
    total_width, total_height = _LEFT + width + _MARGIN, _TOP + height + _MARGIN
    figure = Figure(figsize=(total_width / DPI, total_height / DPI), dpi=fine * DPI)
    axes = figure.add_axes(
        (_LEFT / total_width, _MARGIN / total_height, width / total_width, height / total_height)
    )
    axes.imshow(
        canvas,
        interpolation="nearest",
        aspect="auto",
        extent=(-0.5, width - 0.5, height - 0.5, -0.5),
    )
    axes.set_axis_off()
    figure.text(
        _MARGIN / total_width,
        1 - _TOP / 2 / total_height,
        gallery_heading(clusters),
        va="center",
        fontsize=8.5,
    )
    for row, cluster in enumerate(rows):
        lines = [f"cluster {cluster.number}", counted(cluster.size, "image")]
        lines.append(f"share {cluster.mean_confidence:.2f}")
        if cluster.purity is not None:
            lines.append(f"purity {cluster.purity:.2f}")
        top = row * (SIDE + _ROW_GAP) + (SIDE - _LINE * len(lines)) / 2
        first = {"fontsize": 9, "fontweight": "bold"}
        other = {"fontsize": 8.5, "color": theme.muted}
        for position, line in enumerate(lines):
            look: dict[str, Any] = other if position else first
            axes.text(-14, top + position * _LINE, line, ha="right", va="top", **look)
    return figure


def _montage(chosen: Chosen, images: Pictures, theme: Theme, fine: int) -> NDArray[np.uint8]:
    # One picture for all: an axes for each image would take matplotlib many seconds.
    height = len(chosen) * (SIDE + _ROW_GAP) - _ROW_GAP
    width = 2 * (_IN_PRINT * (SIDE + _GAP) - _GAP) + _ROW_GAP
    paper = np.rint(np.array(to_rgb(theme.paper)) * 255).astype(np.uint8)
    canvas = np.tile(paper, (fine * height, fine * width, 1))
    for row, (_, kinds) in enumerate(chosen):
        top = fine * row * (SIDE + _ROW_GAP)
        for kind, positions in enumerate(kinds):
            start = kind * (_IN_PRINT * (SIDE + _GAP) - _GAP + _ROW_GAP)
            for column, image in enumerate(gather_rows(images, np.array(positions))):
                left = fine * (start + column * (SIDE + _GAP))
                side = fine * SIDE
                canvas[top : top + side, left : left + side] = tile(image, side)
    return canvas
