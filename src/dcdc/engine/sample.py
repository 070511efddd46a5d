"""What a report shows of a run: features and assignments of some of its images.

Shapes: N images of the set, n of the sample, v of its views, D features, K clusters.
"""

from typing import NamedTuple

import numpy as np

from dcdc.augment import PerturbedCopy
from dcdc.data.store import Store
from dcdc.data.vector_store import VectorStore
from dcdc.engine.neighbours import nearest_neighbours
from dcdc.engine.trained_model import TrainedModel
from dcdc.runtime.seeding import derive_generator, derive_seed

MOST_IMAGES = 5_000
MOST_VIEWS = 300
MOST_BYTES = 256 * 2**20
"""Of the features of all images."""
_ROWS_AT_ONCE = 2**14


class Sample(NamedTuple):
    rows: np.ndarray
    """n int64, rising: positions in the set."""
    features: np.ndarray
    """n x D float16: enough for a picture, at half the size."""
    assign: np.ndarray
    """n x K float32, of the original copy as evaluation crops it."""
    view_rows: np.ndarray
    """v int64, rising: positions in the set, each of them one of `rows`."""
    view_assign: np.ndarray
    """v x K float32."""
    view_assign_perturbed: np.ndarray
    """v x K float32, of one perturbed copy each; of feature vectors, of the nearest neighbour."""
    vouch: np.ndarray | None = None
    """n int8, 1 for images that new ones are compared with, where outliers are looked for."""

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in self._asdict().items() if array is not None}


def take_sample(
    model: TrainedModel,
    store: Store,
    perturbed_copy: PerturbedCopy | None,
    seed: int,
    *,
    most_images: int = MOST_IMAGES,
    most_views: int = MOST_VIEWS,
) -> Sample:
    """The same images for the same seed; memory grows with the sample alone."""
    rows = sampled_rows(store.n_answered, seed, most_images)
    features, assigned = model.look_at(store, rows)
    viewed = choose_balanced(assigned.assignments, most_views, derive_seed(seed, "views"))
    if isinstance(store, VectorStore):
        nearest = nearest_neighbours(features, 1, model.device)[:, 0].numpy()
        perturbed = assigned.probabilities[nearest[viewed]]
    else:
        assert perturbed_copy is not None
        generator = derive_generator(seed, "perturbed views", device=model.device)
        perturbed = model.assign_perturbed(
            store, rows[viewed], perturbed_copy, generator
        ).probabilities
    return Sample(
        rows=rows,
        features=in_half_precision(features),
        assign=assigned.probabilities,
        view_rows=rows[viewed],
        view_assign=assigned.probabilities[viewed],
        view_assign_perturbed=perturbed,
    )


def every_feature(
    model: TrainedModel, store: Store, *, most_bytes: int = MOST_BYTES
) -> np.ndarray | None:
    """N x D float16, of every image that is answered; None where the sample has them all, where the
    source holds them, and where they are too many to keep."""
    n_images, n_features = store.n_answered, model.network.n_features
    if model.takes_vectors or n_images <= MOST_IMAGES or n_images * n_features * 2 > most_bytes:
        return None
    found = np.empty((n_images, n_features), np.float16)
    for start in range(0, n_images, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, n_images))
        found[rows] = in_half_precision(model.features_of(store, rows))
    return found


def in_half_precision(features: np.ndarray) -> np.ndarray:
    """As a run keeps them."""
    largest = np.finfo(np.float16).max
    return features.clip(-largest, largest).astype(np.float16)


def sampled_rows(n_images: int, seed: int, most_images: int = MOST_IMAGES) -> np.ndarray:
    """Those that a sample by this seed is of."""
    return choose_rows(n_images, most_images, derive_seed(seed, "sample"))


def choose_rows(n_images: int, most: int, seed: int) -> np.ndarray:
    """Rising positions, at most `most` of them, each image as likely as any other."""
    if n_images <= most:
        return np.arange(n_images)
    return np.sort(np.random.default_rng(seed).choice(n_images, most, replace=False))


def choose_balanced(assignments: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Rising positions, as many of each cluster as there are, or as `most` lets it have."""
    shuffled = np.random.default_rng(seed).permutation(len(assignments))
    by_cluster = shuffled[np.argsort(assignments[shuffled], kind="stable")]
    clusters = assignments[by_cluster]
    rank = np.arange(len(clusters)) - np.searchsorted(clusters, clusters)  # within its cluster
    # One of every cluster, then a second of every cluster; who is left out of a round is chance.
    rounds = np.lexsort((np.argsort(shuffled)[by_cluster], rank))
    return np.sort(by_cluster[rounds[:most]])
