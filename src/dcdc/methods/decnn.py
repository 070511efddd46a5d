"""DeCNN: K-Means on where the filters of a deconvolutional network answer.

Zeiler, Krishnan, Taylor and Fergus, Deconvolutional networks, 2010. An image is a sum of filters,
each laid where a sparse map says; maps are found for each image, and filters are learnt so that few
entries suffice.

This is its first layer, on images of equal contrast: photos around each pixel, as there, others as
a whole. Maps are found by shrinkage with momentum (FISTA) instead of the paper's splitting, for as
long as it takes until one in ten entries or fewer is not 0. Filters descend the error by Adam and
are kept at mean 0 and length 1. What is minimised is looked at on one batch, before and after:
where it did not fall, a warning says so. Features are the maps' means over a grid, and K-Means sees
their 64 leading directions, at length 1. Settings are our own; the grid and what K-Means sees were
chosen on digits and 1,500 images of CIFAR-10's training part, with labels (docs/log.md).
"""

import numpy as np
import torch
from torch import Tensor, nn

from dcdc.augment import to_float
from dcdc.data import ImageSet, channel_statistics
from dcdc.engine.simple_training import Batch, SimplePhase, Terms, adam_step
from dcdc.errors import InputError
from dcdc.losses import reconstruction_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import (
    TrainingContext,
    check_above_zero,
    k_means,
    leading_directions,
)
from dcdc.metrics.directions import directions
from dcdc.networks.layers import Normalise
from dcdc.networks.sparse_coding import SparseCoder
from dcdc.networks.whitening import LocalContrast
from dcdc.prepare.suggestions import TINY

LEAST_GAIN = 1e-3
"""Of the objective: by less it has not fallen."""


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_filters: int | None = None,
    filter_side: int | None = None,
    sparsity: float = 0.3,
    n_iterations: int = 50,
    grid: int = 2,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float = 1e-2,
) -> Clustering:
    """`n_iterations` are those by which the maps of an image are found."""
    check_above_zero(n_filters=n_filters, filter_side=filter_side, n_iterations=n_iterations)
    check_above_zero(grid=grid, n_steps=n_steps, learning_rate=learning_rate, sparsity=sparsity)
    tiny = image_set.side <= TINY
    side = filter_side or (5 if tiny else 7)
    if side % 2 == 0:
        raise InputError(f"filter_side = {side} must be odd")
    usual = 128 if tiny else 64
    training = TrainingContext.open(
        image_set, seed, context, usual if batch_size is None else batch_size
    )
    is_small = tiny or training.device.type == "cpu"
    network = training.build(
        lambda: SparseCoder(
            *(image_set.channels, n_filters or (32 if is_small else 64), side),
            sparsity=sparsity,
            n_iterations=n_iterations,
            evened=local_contrast(image_set) if training.of_photos else None,
        )
    )

    def loss_of(batch: Batch) -> Terms:
        x = network.evened(batch.images)
        codes = network.codes(x)
        error = reconstruction_loss(network.made(codes), x)
        return {
            "loss": error,
            "objective": network.objective(x, codes).mean(),
            "used": (codes != 0).float().mean(),
        }

    descend = adam_step(loss_of, list(network.parameters()), learning_rate)

    def step(batch: Batch) -> Terms:
        terms = descend(batch)
        network.constrain()
        return terms

    with training.threads():
        before, _ = looked_at(network, training)
    n_steps = n_steps or (100 if is_small else 500)
    training.train(SimplePhase(step, training.epochs(n_steps)))
    with training.threads():
        after, used = looked_at(network, training)
    told = f"the objective of a batch went from {before:.4g} to {after:.4g}"
    context.observer.note(f"{told}, and {used:.0%} of its codes are not 0")
    if not after < (1 - LEAST_GAIN) * before:
        context.observer.warn(f"{told}: no filter was learnt; try a lower learning_rate")
    seen = training.codes(network, lambda images: network.features(images, grid))
    if not seen.any():
        raise InputError(f"sparsity = {sparsity} is so dear that no code is used: lower it")
    # The root evens out: one strong answer is no more than a few.
    codes = leading_directions(np.sqrt(seen, out=seen), device=training.device)
    assignments, _ = k_means(directions(codes), n_clusters, seed, training.device)
    return Clustering(assignments, features=codes, network=network)


def local_contrast(image_set: ImageSet) -> nn.Module:
    """As the paper shows its images to the first layer."""
    mean, std = channel_statistics(image_set.images)
    return nn.Sequential(Normalise(mean, std), LocalContrast())


@torch.no_grad()
def looked_at(network: SparseCoder, training: TrainingContext) -> tuple[float, float]:
    """Of the set's first images: the mean objective, and the share of codes that are not 0."""
    images: Tensor = next(iter(training.store.in_chunks(training.batch_size)))
    x = network.evened(to_float(images))
    codes = network.codes(x)
    return network.objective(x, codes).mean().item(), (codes != 0).float().mean().item()
