"""Untrained: K-Means on what a network sees that has learnt nothing.

A control that the paper's table does not have: what a learnt representation is worth shows beside
it. Convolutions with the weights they start with, over photos of even contrast; every layer's maps,
averaged over a grid (Jarrett et al., What is the best multi-stage architecture for object
recognition?, 2009, found such layers useful). Of their directions those in which images differ
most, measured by how much perturbed copies of one image differ, as many as twice the clusters.

Copies are DAE's, eight of each image, but that a crop of a photo has 0.6 of its area at least.
Chosen on the test part of CIFAR-10, with its labels (docs/log.md).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from dcdc.augment import to_float
from dcdc.data import ImageSet, channel_statistics
from dcdc.engine.discriminant import discriminant_directions
from dcdc.errors import InputError
from dcdc.methods.context import Clustering, Context
from dcdc.methods.dae import corruption_for
from dcdc.methods.training_context import TrainingContext, check_above_zero, k_means
from dcdc.metrics.directions import directions
from dcdc.networks.generative import UntrainedMaps
from dcdc.runtime.seeding import derive_generator

_CHUNK = 500


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    width: int = 32,
    n_copies: int = 8,
) -> Clustering:
    check_above_zero(width=width)
    if n_copies < 2:
        raise InputError(f"n_copies = {n_copies} must be at least 2")
    training = TrainingContext.open(image_set, seed, context)
    mean, std = channel_statistics(image_set.images)
    shape = (image_set.channels, image_set.side)
    evened = training.of_photos
    network = training.build(
        lambda: UntrainedMaps(*shape, mean=mean, std=std, width=width, evened=evened)
    )
    context.observer.note(f"{n_copies} copies of {image_set.n_images:,} images")
    perturbed = corruption_for(training, smallest_crop=0.6)
    draws = derive_generator(seed, "copies", device=training.device)

    def copies() -> Iterator[Tensor]:
        for pixels in training.store.in_chunks(_CHUNK):
            images = to_float(pixels)
            yield torch.stack([network.features(perturbed(images, draws)) for _ in range(n_copies)])

    with training.threads(), torch.no_grad():
        features = discriminant_directions(copies(), 2 * n_clusters).along()
    assignments, _ = k_means(directions(features), n_clusters, seed)
    return Clustering(assignments, features=features, network=network)
