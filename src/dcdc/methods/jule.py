"""JULE: clusters merge, step by step, and a network learns by what they are so far.

Yang, Parikh and Batra, Joint unsupervised learning of deep representations and image clusters,
2016. Tiny clusters by nearest neighbours among the pixels come first. By turns a network learns
embeddings in which an image is nearer to one of its own cluster than to others, and clusters merge
by a graph of neighbours among those embeddings (`graph_merging`), until K are left. With the last
embeddings all is merged once more, from their own tiny clusters.

As there: 20 neighbours, nine tenths of the clusters go in a period, 20 epochs each, triplets with a
margin of .2 and 20 others for each pair, batches of 100, SGD with weight decay 5e-5 and a rate of
.01 that decays inversely, embeddings of 160 numbers and length 1, and the last merging, which the
paper has with and without. The network is the autoencoders' encoder, others are drawn of the batch,
the network has learnt by the tiny clusters before any merge, a cluster of which no walk comes back
joins the one that it leads to, and at the end scraps join others (graph_merging.py). Pixels as they
are and the last merging were chosen on digits, with labels.

Shapes: N images, B of a batch, D numbers of an embedding.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcdc.augment import to_float
from dcdc.data import ImageSet, channel_statistics
from dcdc.data.store import open_store
from dcdc.engine.optimiser import Sgd
from dcdc.engine.simple_training import (
    Batch,
    DescendingStep,
    SimplePhase,
    Terms,
    codes_of,
    rate_on,
)
from dcdc.errors import InputError
from dcdc.losses.triplets import triplet_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.graph_merging import merge_clusters, neighbour_graph, tiny_clusters
from dcdc.methods.points import points_of
from dcdc.methods.training_context import TrainingContext, check_above_zero
from dcdc.networks.embedding import Embedding

N_OTHERS = 20
"""Of each pair of one cluster."""
WEIGHT_DECAY = 5e-5
DECAY, DECAY_POWER = 1e-4, 0.75
"""The rate after t steps is that at first, times (1 + DECAY t) to the power of -DECAY_POWER."""


class Clusters:
    """Of every image, and a partner for each of a batch."""

    def __init__(self, labels: NDArray[np.int64], device: torch.device) -> None:
        self.device = device
        self.take(labels)

    @property
    def number(self) -> int:
        return len(self.sizes)

    def take(self, labels: NDArray[np.int64]) -> None:
        self.labels = labels
        self.of_image = torch.from_numpy(labels).to(self.device)
        self.sorted = self.of_image.argsort(stable=True)
        self.sizes = torch.bincount(self.of_image)
        self.starts = self.sizes.cumsum(0) - self.sizes

    def partners(self, indices: Tensor, draws: torch.Generator) -> Tensor:
        """B: of each image any one of its cluster, itself where it is alone."""
        clusters = self.of_image[indices]
        chosen = torch.rand(len(indices), generator=draws, device=self.device)
        sizes = self.sizes[clusters]
        place = torch.minimum((chosen * sizes).long(), sizes - 1)
        return self.sorted[self.starts[clusters] + place]


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_neighbours: int = 20,
    merged: float = 0.9,
    margin: float = 0.2,
    n_embedded: int = 160,
    width: int | None = None,
    epochs: int = 20,
    batch_size: int = 100,
    learning_rate: float = 0.01,
) -> Clustering:
    """`merged` is the share of clusters that go in a period, `epochs` are those of one."""
    check_above_zero(n_neighbours=n_neighbours, margin=margin, n_embedded=n_embedded)
    check_above_zero(epochs=epochs, learning_rate=learning_rate)
    if not 0 < merged < 1:
        raise InputError(f"merged = {merged} must be above 0 and below 1")
    training = TrainingContext.open(image_set, seed, context, batch_size)
    budget = training.budget(None, width, None)
    mean, std = channel_statistics(image_set.images)
    shape = (image_set.channels, image_set.side, n_embedded)
    network = training.build(lambda: Embedding(*shape, mean=mean, std=std, width=budget.width))
    first = _first_clusters(points_of(image_set), n_clusters, training.device)
    clusters = Clusters(first, training.device)
    numbers = periods(clusters.number, n_clusters, merged)
    told = " -> ".join(map(str, (clusters.number, *numbers)))
    context.observer.note(f"clusters, by periods: {told}")
    # A streamed store gives no batch that was not announced.
    is_resident = training.store.is_resident
    store = training.store if is_resident else open_store(image_set.images, training.device)

    def graph_of(points: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return neighbour_graph(points, min(n_neighbours, len(points) - 1), training.device)

    def loss_of(batch: Batch) -> Terms:
        partners = clusters.partners(batch.indices, batch.draws)
        images = torch.cat([batch.images, to_float(store.batch(partners))])
        points, near = network(images).chunk(2)
        n_images = len(points)
        others = torch.randint(
            n_images, (n_images, N_OTHERS), generator=batch.draws, device=points.device
        )
        own = clusters.of_image[batch.indices]
        is_other = own[:, None] != own[others]
        return {"loss": triplet_loss(points, near, points[others], is_other, margin)}

    def period(before: int | None) -> SimplePhase:
        optimiser = Sgd(
            network.parameters(),
            rate_on(training.device, learning_rate),
            weight_decay=WEIGHT_DECAY,
            fused=training.device.type == "cuda",
        )
        step = DescendingStep(
            loss_of, optimiser, lambda t: learning_rate * (1 + DECAY * t) ** -DECAY_POWER
        )

        def merge_first(epoch: int) -> None:
            if epoch == 1 and before is not None:
                points = codes_of(network, network, training.store).cpu().numpy()
                clusters.take(merge_clusters(clusters.labels, *graph_of(points), before))
                context.observer.note(f"merged to {clusters.number} clusters")

        return SimplePhase(step, epochs, merge_first, may_be_captured=is_resident)

    training.train(*map(period, (None, *numbers[:-1])))
    points = training.codes(network, network)
    with training.threads():
        last = _first_clusters(points, n_clusters, training.device)
        assignments = merge_clusters(last, *graph_of(points), n_clusters, to_the_end=True)
    return Clustering(assignments, features=points, network=network)


def _first_clusters(
    points: NDArray[np.float32], n_clusters: int, device: torch.device
) -> NDArray[np.int64]:
    """Tiny ones; where they would be too few, each image by itself."""
    found = tiny_clusters(points, device)
    return found if found.max() >= n_clusters - 1 else np.arange(len(points))


def periods(n_first: int, n_clusters: int, merged: float) -> list[int]:
    """How many clusters are left after each period; the last is `n_clusters`."""
    numbers = [n_first]
    while numbers[-1] > n_clusters:
        left = min(round(numbers[-1] * (1 - merged)), numbers[-1] - 1)
        numbers.append(max(n_clusters, left))
    return numbers[1:] or [n_clusters]
