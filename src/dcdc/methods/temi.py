"""TEMI: many heads over stored features, each pulled towards what its neighbours' teacher says.

Adaloglou, Michels, Kalisch and Kollmann, Exploring the limits of deep image clustering using
pretrained models, 2023. An image and one of its nearest neighbours most likely show the same. Each
head's assignment of one and its teacher's of the other are made to share pointwise mutual
information, to the power of beta, and pairs count as much as all teachers agree that both belong
together. Teachers are moving averages of the heads; the head with the lowest loss answers.

As there: 50 neighbours, beta 0.6, temperature 0.1, batches of 512, and shares of the clusters that
are moving averages. Ours, for a CPU and chosen on CIFAR-10: 16 linear heads instead of 50, over
principal components of the vectors' directions; Adam without weight decay; 1,000 steps, and so a
teacher that keeps 0.98 of itself a step, not 0.996.

Shapes: N images, D features, H heads, B images of a batch, K clusters.
"""

import torch
from torch import Tensor

from dcdc.data import VectorSet
from dcdc.engine.optimiser import Adam
from dcdc.engine.simple_training import Batch, Terms
from dcdc.losses.stored_features import temi_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import check_above_zero
from dcdc.methods.vector_training import VectorTraining

_ROWS = 4096
_SHARES_KEPT = 0.9


class Heads:
    """H linear heads side by side, and their teachers."""

    def __init__(self, training: VectorTraining, n_heads: int, n_clusters: int) -> None:
        n_features = training.vectors.shape[1]
        self.shape = (n_heads, n_clusters)
        # Logits of about 1 before the temperature, whatever D.
        self.weight = training.draw(
            "weights", n_features, n_heads * n_clusters, scale=0.1 / n_features**0.5
        )
        self.bias = training.draw("biases", n_heads * n_clusters, scale=0.0)
        self.teacher = [self.weight.detach().clone(), self.bias.detach().clone()]
        self.shares = torch.full((n_heads, n_clusters), 1 / n_clusters, device=training.device)

    def assign(self, vectors: Tensor, temperature: float, *, by_teacher: bool = False) -> Tensor:
        """H x B x K"""
        weight, bias = self.teacher if by_teacher else (self.weight, self.bias)
        logits = (vectors @ weight + bias) / temperature
        return logits.view(len(vectors), *self.shape).softmax(dim=2).transpose(0, 1)

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        for kept, now in zip(self.teacher, (self.weight, self.bias), strict=True):
            kept.lerp_(now, 1 - momentum)


def cluster(
    image_set: VectorSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_heads: int = 16,
    n_neighbours: int = 50,
    beta: float = 0.6,
    temperature: float = 0.1,
    momentum: float = 0.98,
    n_steps: int = 1000,
    batch_size: int = 512,
    n_components: int = 128,
    learning_rate: float = 1e-3,
) -> Clustering:
    check_above_zero(n_heads=n_heads, n_neighbours=n_neighbours, beta=beta)
    check_above_zero(temperature=temperature, n_steps=n_steps, learning_rate=learning_rate)
    check_above_zero(batch_size=batch_size, n_components=n_components)
    training = VectorTraining.open(image_set, seed, context, batch_size, n_components)
    vectors, neighbours = training.vectors, training.neighbours(n_neighbours)
    heads = Heads(training, n_heads, n_clusters)
    optimiser = Adam([heads.weight, heads.bias], learning_rate)
    losses = torch.zeros(n_heads, device=training.device)

    def step(batch: Batch) -> Terms:
        shape = (len(batch.indices),)
        chosen = torch.randint(
            neighbours.shape[1], shape, generator=batch.draws, device=training.device
        )
        pair = (batch.images, vectors[neighbours[batch.indices, chosen]])
        with torch.no_grad():
            first, second = (heads.assign(each, temperature, by_teacher=True) for each in pair)
            now = (first.mean(dim=1) + second.mean(dim=1)) / 2
            heads.shares.lerp_(now, 1 - _SHARES_KEPT)
        students = (heads.assign(pair[0], temperature), heads.assign(pair[1], temperature))
        each_loss = temi_loss(students, (first, second), heads.shares, beta)
        optimiser.zero_grad()
        torch.autograd.backward(each_loss.sum())
        optimiser.step()
        heads.follow(momentum)
        losses.lerp_(each_loss.detach(), 0.05)
        return {"loss": each_loss.detach().mean()}

    training.train(step, n_steps)
    best = int(losses.argmin())
    with torch.no_grad():
        shares = torch.cat(
            [
                heads.assign(rows, temperature, by_teacher=True)[best]
                for rows in torch.split(vectors, _ROWS)
            ]
        )
    found = shares.cpu().numpy()
    return Clustering(found.argmax(axis=1), probabilities=found)
