"""Agglomerative clustering of pixels.

Gowda and Krishna, Agglomerative clustering using the concept of mutual nearest neighbourhood, 1978,
is what the paper cites: every image begins as a cluster, and the nearest two clusters become one
until K are left, where only neighbours may. Nearest here is Ward's (Hierarchical grouping to
optimize an objective function, 1963), the merger that adds least to the squared distances from the
centres, and neighbours are those of the graph of nearest images, as in scikit-learn's structured
Ward: N x N distances of 60,000 images would take 14 GB.

Settings: neighbours as in scikit-learn's examples. Above `exact_up_to` images they are found, and
joined, by principal components, our choice, for speed; up to there the seed changes nothing.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.neighbors import kneighbors_graph

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer
from dcdc.methods.components import principal_components
from dcdc.methods.method import SILENT, Clustering, check_task, pixels_of


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    *,
    device: str = "cpu",  # noqa: ARG001
    observer: Observer = SILENT,  # noqa: ARG001
    folder: Path | None = None,  # noqa: ARG001
    n_neighbours: int = 10,
    exact_up_to: int = 5000,
    n_components: int = 50,
) -> Clustering:
    check_task(image_set, n_clusters)
    points = pixels_of(image_set)
    if len(points) > exact_up_to:
        points = principal_components(points, n_components, seed)
    graph = kneighbors_graph(points, min(n_neighbours, len(points) - 1))
    ward = AgglomerativeClustering(n_clusters, linkage="ward", connectivity=graph)
    with warnings.catch_warnings():
        # Parts that no neighbour joins are joined where they are nearest.
        warnings.filterwarnings("ignore", "the number of connected components")
        return Clustering(ward.fit_predict(points).astype(np.int64))
