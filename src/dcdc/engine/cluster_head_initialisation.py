"""The cluster head's initialisation by K-Means, where training found its features first.

Heads that start at random beside an untrained backbone settle early into a poor partition and stay
there (docs/log.md has the figures); K-Means on features that the over-clustering head has already
shaped gives them a good one to improve.

Shapes: N images, D features, K clusters.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dcdc.augment import PerturbedCopy
from dcdc.data.store import Store
from dcdc.engine.copy_whitening import copy_covariance, whitened_directions
from dcdc.engine.joined_groups import STARTS as JOIN_STARTS
from dcdc.engine.joined_groups import joined_groups
from dcdc.engine.k_means import STARTS, centres_of, reduced_points, some_rows
from dcdc.engine.linear_discriminant import discriminants
from dcdc.engine.outliers import ordinary_rows
from dcdc.engine.sample import choose_rows
from dcdc.engine.trained_model import TrainedModel
from dcdc.losses.sizes import EQUAL, Sizes
from dcdc.metrics.health import OUTLIER
from dcdc.networks import CLUSTER_HEAD
from dcdc.runtime.seeding import derive_generator, derive_seed

MOST_IMAGES = 20_000
N_COPIES, MOST_PERTURBED = 8, 2_000
"""Perturbed copies of an image, and of how many images, that tell what perturbation changes."""
SHARPNESS = 3.0
"""Standard deviation of the first logits: sure enough to teach, soft enough to be corrected."""


def initialise_by_k_means(
    model: TrainedModel,
    store: Store,
    seed: int,
    *,
    spherical: bool,
    sizes: Sizes = EQUAL,
    outliers: bool = False,
    perturbed_copy: Callable[[int], PerturbedCopy] | None = None,
) -> None:
    """Every cluster head of the model, from the features that the images have now; of several
    processes the first looks for the centres. `perturbed_copy` makes that many perturbed copies of
    each image: clusters of unequal size are told better where it is known what these change."""
    heads: list[nn.Linear] = []
    seeds: list[int] = []
    for number, name in enumerate(model.network.sub_heads(CLUSTER_HEAD)):
        head = model.network.heads[name]
        assert isinstance(head, nn.Linear)
        heads.append(head)
        seeds.append(derive_seed(seed, *(("head start", number) if number else ("head start",))))
    covariance = None
    if perturbed_copy is not None:
        covariance = partial(_covariance_of_copies, model, store, seed, perturbed_copy(N_COPIES))
    by_first = partial(
        initialise_heads,
        *(heads, store.n_answered, partial(model.features_of, store), seeds, spherical),
        sizes=sizes,
        outliers=outliers,
        only_look=not model.processes.is_first,
        device=model.device,
        covariance=covariance,
        given_vectors_of=partial(model.given_vectors_of, store),
    )
    model.processes.with_barrier(by_first)
    model.processes.broadcast([weight for head in heads for weight in (head.weight, head.bias)])


def _covariance_of_copies(
    model: TrainedModel, store: Store, seed: int, perturbed_copy: PerturbedCopy
) -> NDArray[np.float64]:
    rows = choose_rows(store.n_answered, MOST_PERTURBED, derive_seed(seed, "perturbed images"))
    generator = derive_generator(seed, "perturbed copies", device=model.device)
    return copy_covariance(model.perturbed_features(store, rows, perturbed_copy, generator))


@torch.no_grad()
def initialise_heads(
    heads: Sequence[nn.Linear],
    n_images: int,
    features_of: Callable[[np.ndarray], np.ndarray],
    seeds: Sequence[int],
    spherical: bool = False,
    *,
    sizes: Sizes = EQUAL,
    outliers: bool = False,
    only_look: bool = False,
    device: torch.device | None = None,
    covariance: Callable[[], NDArray[np.float64]] | None = None,
    given_vectors_of: Callable[[np.ndarray], np.ndarray | None] = lambda _: None,
) -> None:
    """Sets each head so that its arg-max is the nearest of K centres of the images' features.
    Where clusters need not be of equal size, centres are not enough: it tells joined groups apart.
    Where there may be `outliers`, images that seem to be such have no part in it.

    `features_of` takes sorted rows, all N or a sample of them, and gives their features (x D).
    `spherical` compares directions alone: after instance contrast, which compares cosines, lengths
    say little about what an image shows. The head sees the lengths all the same, so its arg-max is
    then the nearest centre but for images of unusual length near a border. `only_look` helps to
    find the features, and leaves the heads to another process. K-Means is on `device`.
    `covariance` computes how features of an image's perturbed copies differ (D x D); joined groups
    alone ask for it. `given_vectors_of` rows are what features are the directions of, if they are:
    outliers are told by these.
    """
    randoms = [np.random.default_rng(seed) for seed in seeds]
    rows = some_rows(n_images, MOST_IMAGES, randoms[0])
    features = features_of(rows)
    if only_look:
        return
    if sizes == EQUAL and outliers:
        drawn = int(randoms[0].integers(2**31))
        n_clusters, given = heads[0].out_features, given_vectors_of(rows)
        features = features[ordinary_rows(features, n_clusters, drawn, given)]
    lengths = np.linalg.norm(features, axis=1, keepdims=True).clip(min=1e-8)
    points, back = reduced_points(features / lengths if spherical else features, spherical)
    if sizes != EQUAL:
        if covariance is not None:
            points = whitened_directions(features, covariance())
        _by_joins(heads, features, points, sizes, randoms)
        return
    n_init = STARTS if len(heads) == 1 else 1
    for head, random in zip(heads, randoms, strict=True):
        seed = int(random.integers(2**31))
        centres = back(centres_of(points, head.out_features, seed, n_init, device))
        # -|f - c|^2 / 2 is linear in f up to a part that all clusters share.
        middle = centres.mean(axis=0)
        weight = centres - middle
        bias = -0.5 * ((centres**2).sum(axis=1) - (middle**2).sum())
        if spherical:
            bias = bias * lengths.mean()
        _set(head, features, weight, bias)


def _set(head: nn.Linear, features: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> None:
    scale = SHARPNESS / max((features @ weight.T + bias).std(), 1e-8)
    head.weight.copy_(torch.from_numpy(weight * scale))
    head.bias.copy_(torch.from_numpy(bias * scale))


def _by_joins(
    heads: Sequence[nn.Linear],
    features: np.ndarray,
    points: np.ndarray,
    sizes: Sizes,
    randoms: Sequence[np.random.Generator],
) -> None:
    """By linear discriminants (Fisher, 1936) of joined groups: they know how wide clusters are,
    which centres do not."""
    exact = features.astype(np.float64)
    n_init = JOIN_STARTS if len(heads) == 1 else 1
    for head, random in zip(heads, randoms, strict=True):
        seed = int(random.integers(2**31))
        labels = joined_groups(points, head.out_features, sizes, seed, n_init)
        inside = labels != OUTLIER
        weight, bias = _discriminants(exact[inside], labels[inside], head.out_features)
        _set(head, features, weight, bias)


def _discriminants(
    features: np.ndarray, labels: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights, K x D, and biases, K, of a linear head whose arg-max is the label of most images."""
    middle = features.mean(axis=0)
    away = features - middle
    sums = np.zeros((n_clusters, features.shape[1]))
    np.add.at(sums, labels, away)
    centres = sums / np.bincount(labels, minlength=n_clusters).clip(min=1)[:, None]
    within = away - centres[labels]
    spread = within.T @ within / len(features)
    weight = discriminants(centres, spread)
    bias = -0.5 * (weight * centres).sum(axis=1) - weight @ middle
    return weight - weight.mean(axis=0), bias - bias.mean()
