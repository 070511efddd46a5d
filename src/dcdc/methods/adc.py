"""ADC: centroids among the images' embeddings, and walks between both that end where they began.

Haeusser, Plapp, Golkov, Aljalbout and Cremers, Associative deep clustering: Training a
classification network with no labels, 2018. Every cluster has a few trainable centroids. A walk
from a centroid to an image and back, each step by the softmax of dot products, shall end at a
centroid of the same cluster, and all images shall be visited; likewise walks from an image's copies
over the images of the batch. A linear layer that tells the centroids' clusters apart answers for
the images.

As there: 4 centroids a cluster, 128 numbers, 3 copies, half the weight for visits and for the
linear layer, small penalties on long embeddings, centroids that start again from K-Means, batches
of 100, Adam with moments of .8 and .9, and on a GPU its rate, which falls to a third every 5,000
steps. Copies are DCDC's for such images, the network is the autoencoders' encoder. On digits .2 of
the steps before K-Means, their number and the rate were chosen with labels.

Shapes: N images, B of a batch, A centroids, D numbers of an embedding, K clusters.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.augment import PerturbedCopy
from dcdc.data import ImageSet, channel_statistics
from dcdc.engine.optimiser import Adam
from dcdc.engine.simple_training import (
    Batch,
    DescendingStep,
    SimplePhase,
    Terms,
    codes_of,
    rate_on,
)
from dcdc.losses.association import association_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import SMALL, TrainingContext, check_above_zero, k_means
from dcdc.networks.embedding import Embedding
from dcdc.prepare.resolve import perturbed_copy
from dcdc.prepare.suggestions import suggest_for

MOMENTS = (0.8, 0.9)
DECAY, DECAY_STEPS = 0.33, 5_000
VISIT_WEIGHT, LABEL_WEIGHT, PENALTY = 0.5, 0.5, 2e-4
BEFORE_K_MEANS = 0.2
"""Of the steps."""


class Centroids(nn.Module):
    """A x D points, each of a cluster, and the linear layer that tells which."""

    def __init__(self, n_clusters: int, n_each: int, n_embedded: int) -> None:
        super().__init__()
        drawn = torch.randn(n_clusters * n_each, n_embedded) / n_embedded**0.5
        self.points = nn.Parameter(drawn)
        self.layer = nn.Linear(n_embedded, n_clusters)
        self.clusters: Tensor
        self.register_buffer("clusters", torch.arange(n_clusters).repeat_interleave(n_each))


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_centroids: int = 4,
    n_embedded: int = 128,
    n_copies: int = 3,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int = 100,
    learning_rate: float | None = None,
) -> Clustering:
    check_above_zero(n_centroids=n_centroids, n_embedded=n_embedded, n_copies=n_copies)
    training = TrainingContext.open(image_set, seed, context, batch_size)
    is_small = training.budget(None, None, None) == SMALL
    n_steps = (1_500 if is_small else 20_000) if n_steps is None else n_steps
    learning_rate = (1e-3 if is_small else 2e-4) if learning_rate is None else learning_rate
    budget = training.budget(n_steps, width, learning_rate)
    mean, std = channel_statistics(image_set.images)
    shape = (image_set.channels, image_set.side, n_embedded)
    network = training.build(lambda: Embedding(*shape, mean=mean, std=std, width=budget.width))
    centroids = training.build(lambda: Centroids(n_clusters, n_centroids, n_embedded))
    perturbed = perturbed_copy(suggest_for(image_set, n_clusters, context.device), n_copies)
    epochs = training.epochs(budget.n_steps)

    @torch.no_grad()
    def start_again(epoch: int) -> None:
        if epoch == int(BEFORE_K_MEANS * epochs) + 1:
            points = codes_of(network, network, training.store).cpu().numpy()
            found = centroids_by_k_means(points, n_clusters, n_centroids, seed, training.device)
            centroids.points.copy_(torch.from_numpy(found))

    parameters = [*network.parameters(), *centroids.parameters()]
    rate = rate_on(training.device, budget.learning_rate)
    step = DescendingStep(
        lambda batch: _terms(network, centroids, perturbed, batch),
        Adam(parameters, rate, MOMENTS, fused=parameters[0].is_cuda),
        lambda n_done: budget.learning_rate * DECAY ** (n_done // DECAY_STEPS),
    )
    training.train(SimplePhase(step, epochs, start_again, may_be_captured=True))
    points = training.codes(network, network)
    with torch.no_grad():
        assign = centroids.cpu().layer(torch.from_numpy(points)).softmax(1).numpy()
    return Clustering(
        assign.argmax(axis=1).astype(np.int64),
        probabilities=assign,
        features=points,
        network=network,
    )


def centroids_by_k_means(
    points: NDArray[np.float32],
    n_clusters: int,
    n_each: int,
    seed: int,
    device: torch.device | None = None,
) -> NDArray[np.float32]:
    """A x D, those of a cluster after those of another: K-Means of all points (N x D), then of each
    cluster's. A cluster of fewer points has some of them twice."""
    of_point, _ = k_means(points, n_clusters, seed, device)
    found = []
    for number in range(n_clusters):
        own = points[of_point == number]
        is_enough = len(np.unique(own, axis=0)) >= n_each
        if is_enough:
            found.append(k_means(own, n_each, seed, device)[1])
        else:
            found.append(np.resize(own, (n_each, own.shape[1])))
    return np.concatenate(found)


def _terms(
    network: Embedding, centroids: Centroids, perturbed: PerturbedCopy, batch: Batch
) -> Terms:
    n_images = len(batch.images)
    points = network(torch.cat([batch.images, perturbed(batch.images, batch.draws)]))
    images, copies = points[:n_images], points[n_images:]
    of_image = torch.arange(n_images, device=points.device).repeat(perturbed.n_repeats)
    by_centroid = association_loss(centroids.points, centroids.clusters, images)
    by_copy = association_loss(copies, of_image, images)
    terms = {
        "walker": by_centroid.walker + by_copy.walker,
        "visit": by_centroid.visit + by_copy.visit,
        "label": F.cross_entropy(centroids.layer(centroids.points), centroids.clusters),
    }
    length = points.abs().sum(1).mean() + points.square().sum(1).mean()
    loss = terms["walker"] + VISIT_WEIGHT * terms["visit"] + LABEL_WEIGHT * terms["label"]
    return {"loss": loss + PENALTY * length, **terms}
