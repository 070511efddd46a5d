"""TURTLE: the labelling that linear classifiers on stored features can fit best.

Gadetsky, Jiang and Brbic, Let go of your labels with unsupervised transfer, 2024. A linear map of
each feature space, with softmax, labels the images; the mean over the spaces is the labelling. In
an inner loop linear classifiers, one for each space, take a few steps towards it; then the maps
descend the classifiers' error, by the labelling alone, less the entropy of the clusters' sizes. So
they come to the labelling of widest margin in all spaces at once. Where other copies of the images
have vectors of their own, these are a second space.

As there: weight-normed maps, 10 inner steps, an entropy weight of 10, Adam, at 1e-3 for the maps.
Ours, for a CPU and chosen on CIFAR-10: principal components of the vectors' directions, classifiers
at 1e-2 that go on from the last outer step (an option there), and 300 outer steps of 1,000 images
instead of 6,000 of 10,000.

Shapes: N images, D features, B images of a batch, K clusters.
"""

import torch
from torch import Tensor, nn

from dcdc.data import VectorSet
from dcdc.engine.optimiser import Adam
from dcdc.engine.simple_training import Batch, Terms
from dcdc.losses.stored_features import soft_cross_entropy, turtle_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import check_above_zero
from dcdc.methods.vector_training import VectorTraining

_ROWS = 4096


class LinearMap:
    """D x K with biases."""

    def __init__(self, training: VectorTraining, name: str, n_features: int, n: int) -> None:
        scale = n_features**-0.5
        self.weight = training.draw(f"{name} weights", n_features, n, scale=scale)
        self.bias = training.draw(f"{name} biases", n, scale=scale)

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [self.weight, self.bias]

    def __call__(self, vectors: Tensor) -> Tensor:
        logits: Tensor = vectors @ self.weight + self.bias
        return logits


class NormedMap(LinearMap):
    """Each output's weights are a direction and a length, which learn apart (Salimans and Kingma,
    Weight normalization, 2016)."""

    def __init__(self, training: VectorTraining, name: str, n_features: int, n: int) -> None:
        super().__init__(training, name, n_features, n)
        self.length = nn.Parameter(self.weight.detach().norm(dim=0))

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [*super().parameters, self.length]

    def __call__(self, vectors: Tensor) -> Tensor:
        weight = self.weight * (self.length / self.weight.norm(dim=0))
        logits: Tensor = vectors @ weight + self.bias
        return logits


def cluster(
    image_set: VectorSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    entropy_weight: float = 10.0,
    n_inner_steps: int = 10,
    n_steps: int = 300,
    batch_size: int = 1000,
    n_components: int = 128,
    learning_rate: float = 1e-3,
    inner_rate: float = 1e-2,
) -> Clustering:
    check_above_zero(n_inner_steps=n_inner_steps, n_steps=n_steps, batch_size=batch_size)
    check_above_zero(learning_rate=learning_rate, inner_rate=inner_rate)
    check_above_zero(n_components=n_components)
    training = VectorTraining.open(image_set, seed, context, batch_size, n_components)
    spaces = training.spaces
    shapes = [(number, space.shape[1], n_clusters) for number, space in enumerate(spaces)]
    maps = [NormedMap(training, f"map {number}", *shape) for number, *shape in shapes]
    classifiers = [LinearMap(training, f"classifier {number}", *shape) for number, *shape in shapes]
    outer = Adam([each for one in maps for each in one.parameters], learning_rate)
    inner = Adam([each for one in classifiers for each in one.parameters], inner_rate)

    def step(batch: Batch) -> Terms:
        rows = [space[batch.indices] for space in spaces]
        labels = [one(each).softmax(dim=1) for one, each in zip(maps, rows, strict=True)]
        labelling = torch.stack(labels).mean(dim=0).detach()
        for _ in range(n_inner_steps):
            inner.zero_grad()
            for one, each in zip(classifiers, rows, strict=True):
                torch.autograd.backward(soft_cross_entropy(one(each), labelling))
            inner.step()
        outer.zero_grad()
        with torch.no_grad():
            logits = [one(each) for one, each in zip(classifiers, rows, strict=True)]
        loss = turtle_loss(logits, labels, entropy_weight)
        torch.autograd.backward(loss)
        outer.step()
        return {"loss": loss.detach()}

    training.train(step, n_steps)
    with torch.no_grad():
        chunks = zip(*(torch.split(space, _ROWS) for space in spaces), strict=True)
        shares = torch.cat(
            [
                torch.stack(
                    [one(each).softmax(dim=1) for one, each in zip(maps, rows, strict=True)]
                ).mean(dim=0)
                for rows in chunks
            ]
        )
    found = shares.cpu().numpy()
    return Clustering(found.argmax(axis=1), probabilities=found)
