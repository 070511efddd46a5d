"""DCGAN: K-Means on what a discriminator sees in images.

Radford, Metz and Chintala, Unsupervised representation learning with deep convolutional generative
adversarial networks, 2016. One network makes images from noise, another learns to tell them from
real ones; to do so it must know what real ones are like.

As there: strided convolutions with norms and leaky rectifiers, batches of 128, Adam at 2e-4 with a
first moment of 0.5, and features of every layer of the discriminator, the greatest of each field of
a 4 x 4 grid.

Not as there: filters of 3 x 3 instead of 5 x 5; weights as torch starts them instead of Gaussian of
deviation 0.02; noise of 64 Gaussian numbers instead of 100 uniform ones; no norm after the
generator's dense layer; a sigmoid instead of tanh at its end, brought to -1 to 1 by the
discriminator; a first layer of the discriminator without stride; above 16 pixels a grid of 2 x 2,
for memory; K-Means on the features' 64 leading directions, where they trained a linear classifier
with labels. Widths and length are our own.
"""

from pathlib import Path

import torch
from torch import Tensor

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer
from dcdc.engine.optimiser import Adam
from dcdc.engine.short_training import Batch, ShortPhase, Terms
from dcdc.losses import discriminator_loss, generator_loss
from dcdc.methods.method import SILENT, Clustering, check_task
from dcdc.methods.representation import Studio, k_means, leading_directions
from dcdc.networks.adversarial import Discriminator, Generator
from dcdc.presets import TINY

N_NOISE = 64
BETAS = (0.5, 0.999)


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    folder: Path | None = None,  # noqa: ARG001
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int = 128,
    learning_rate: float = 2e-4,
) -> Clustering:
    check_task(image_set, n_clusters)
    studio = Studio.open(image_set, seed, device, observer, batch_size)
    effort = studio.effort(n_steps, width, learning_rate)
    shape = (image_set.channels, image_set.side, effort.width)
    made_by, told_by = studio.build(
        lambda: torch.nn.ModuleList([Generator(N_NOISE, *shape), Discriminator(*shape)])
    )
    assert isinstance(made_by, Generator)
    assert isinstance(told_by, Discriminator)
    making, telling = (
        Adam(network.parameters(), effort.learning_rate, BETAS) for network in (made_by, told_by)
    )

    def step(batch: Batch) -> Terms:
        noise = torch.randn(len(batch.images), N_NOISE, generator=batch.draws, device=studio.device)
        made: Tensor = made_by(noise)
        told = discriminator_loss(told_by(batch.images), told_by(made.detach()))
        telling.zero_grad()
        torch.autograd.backward(told)
        telling.step()
        fooled = generator_loss(told_by(made))
        making.zero_grad()
        torch.autograd.backward(fooled)
        making.step()
        terms = {"loss": told + fooled, "discriminator": told, "generator": fooled}
        return {name: term.detach() for name, term in terms.items()}

    studio.train(ShortPhase(step, studio.epochs(effort.n_steps)))
    grid = 4 if image_set.side <= TINY else 2
    seen = studio.codes(told_by, lambda images: told_by.features(images, grid))
    codes = leading_directions(seen)
    assignments, _ = k_means(codes, n_clusters, seed)
    return Clustering(assignments, features=codes, network=told_by)
