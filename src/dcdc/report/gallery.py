"""Which images stand for a cluster, and how many clusters get shown.

Shapes: H = W pixels a side, C channels (1 or 3).
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dcdc.report.clusters import ClusterFacts

MAX_CLUSTERS = 30
PER_CLUSTER = 12
SIDE = 96  # pixels; larger images are made smaller


def shown_clusters(clusters: list[ClusterFacts]) -> list[ClusterFacts]:
    """The largest ones that have images."""
    return [cluster for cluster in clusters if cluster.size][:MAX_CLUSTERS]


def typical_images(cluster: ClusterFacts) -> list[int]:
    """Positions of the images it is surest of."""
    return [int(position) for position in cluster.members[:PER_CLUSTER]]


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


def thumbnail_png(image: NDArray[np.uint8]) -> bytes:
    """An image (H x W x C) at its own size, or smaller."""
    picture = _as_picture(image)
    if picture.width > SIDE:
        picture = picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()


def tile(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image (H x W x C) at SIDE x SIDE x 3."""
    picture = _as_picture(image).convert("RGB")
    coarse = is_coarse(picture.width)
    method = Image.Resampling.NEAREST if coarse else Image.Resampling.LANCZOS
    return np.asarray(picture.resize((SIDE, SIDE), method))


def _as_picture(image: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else np.ascontiguousarray(image))
