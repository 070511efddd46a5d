"""Which images stand for a cluster, and how many clusters get shown.

Shapes: H = W pixels a side, C channels (1 or 3).
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dcdc.report.clusters import ClusterFacts
from dcdc.report.figure_files import data_uri
from dcdc.report.sheet import as_picture, encode

MAX_CLUSTERS = 30
PER_CLUSTER = 12
UNCERTAIN_PER_CLUSTER = 6
UNCERTAIN = 24  # of the whole set
LATER, LATER_UNCERTAIN = 8, 4  # of each cluster beyond MAX_CLUSTERS, smaller and by script
SIDE = 96  # pixels; larger images are made smaller


def shown_clusters(clusters: list[ClusterFacts]) -> list[ClusterFacts]:
    """The largest ones that have images."""
    return [cluster for cluster in clusters if cluster.size][:MAX_CLUSTERS]


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


def most_uncertain_images(certainty: NDArray[np.float64]) -> list[int]:
    """Positions of the images of the whole set whose cluster is least clear."""
    return [int(position) for position in np.argsort(certainty, kind="stable")[:UNCERTAIN]]


def gallery_heading(clusters: list[ClusterFacts]) -> str:
    """What the gallery shows and what it leaves out."""
    n_alive = sum(cluster.size > 0 for cluster in clusters)
    n_empty = len(clusters) - n_alive
    heading = f"The {PER_CLUSTER} most confident images of each cluster, surest first."
    if n_alive > MAX_CLUSTERS:
        heading += f" The {MAX_CLUSTERS} largest of {n_alive} clusters are shown."
    if n_empty:
        heading += (
            f" {n_empty} of {len(clusters)} clusters {'is' if n_empty == 1 else 'are'} empty."
        )
    return heading


def is_coarse(side: int) -> bool:
    """Whether pixels should stay sharp squares when the image is made larger."""
    return side < SIDE // 2


def thumbnail_uri(image: NDArray[np.uint8]) -> str:
    """An image (H x W x C) at its own size, or smaller."""
    picture = as_picture(image)
    if picture.width > SIDE:
        picture = picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    # Less than half of a photograph's PNG.
    quality = None if is_coarse(picture.width) else 85
    return data_uri(*encode(picture, quality))


def tile(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image (H x W x C) at SIDE x SIDE x 3."""
    picture = as_picture(image).convert("RGB")
    coarse = is_coarse(picture.width)
    method = Image.Resampling.NEAREST if coarse else Image.Resampling.LANCZOS
    return np.asarray(picture.resize((SIDE, SIDE), method))
