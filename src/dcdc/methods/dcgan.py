"""DCGAN: K-Means on what a discriminator sees in images.

Radford, Metz and Chintala, Unsupervised representation learning with deep convolutional generative
adversarial networks, 2016. One network makes images from noise, another learns to tell them from
real ones; to do so it must know what real ones are like.

As there: strides instead of pooling, norms but beside the pixels, leaky rectifiers, tanh at the
end, weights of deviation .02, noise of 100 numbers, even between -1 and 1, batches of 128, Adam at
2e-4 with a first moment of 0.5, and features of every layer of the discriminator, the greatest of
each field of a 4 x 4 grid. Filters are 4 x 4, which a stride of 2 covers evenly, as in most codes
of it since; the first had 5 x 5.

Not as there: K-Means on the features' 64 leading directions, whitened and at length 1, where they
trained a linear classifier with labels; images of the set itself, where they learnt from
ImageNet's. Widths, length and what K-Means sees are our own; for tiny images they were chosen on
digits, with labels (docs/log.md).
"""

from dataclasses import replace

import torch
from torch import Tensor

from dcdc.data import ImageSet
from dcdc.engine.optimiser import Adam
from dcdc.engine.simple_training import Batch, SimplePhase, Terms
from dcdc.losses import discriminator_loss, generator_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import (
    SMALL,
    TrainingContext,
    k_means,
    leading_directions,
    whitened,
)
from dcdc.metrics.directions import directions
from dcdc.networks.adversarial import Discriminator, Generator

N_NOISE = 100
BETAS = (0.5, 0.999)


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int = 128,
    learning_rate: float = 2e-4,
) -> Clustering:
    training = TrainingContext.open(image_set, seed, context, batch_size)
    small = replace(SMALL, n_steps=1_000, width=32)
    budget = training.budget(n_steps, width, learning_rate, small)
    shape = (image_set.channels, image_set.side, budget.width)
    generator, discriminator = training.build(
        lambda: torch.nn.ModuleList([Generator(N_NOISE, *shape), Discriminator(*shape)])
    )
    assert isinstance(generator, Generator)
    assert isinstance(discriminator, Discriminator)
    generator_adam, discriminator_adam = (
        Adam(
            *(network.parameters(), budget.learning_rate, BETAS),
            fused=training.device.type == "cuda",  # its moments are then where a captured step is
        )
        for network in (generator, discriminator)
    )

    def step(batch: Batch) -> Terms:
        made: Tensor = generator(draw_noise(len(batch.images), batch.draws))
        d_loss = discriminator_loss(discriminator(batch.images), discriminator(made.detach()))
        discriminator_adam.zero_grad()
        torch.autograd.backward(d_loss)
        discriminator_adam.step()
        g_loss = generator_loss(discriminator(made))
        generator_adam.zero_grad()
        torch.autograd.backward(g_loss)
        generator_adam.step()
        terms = {
            "loss": d_loss + g_loss,
            "discriminator": d_loss,
            "generator": g_loss,
        }
        return {name: term.detach() for name, term in terms.items()}

    epochs = training.epochs(budget.n_steps)
    training.train(SimplePhase(step, epochs, may_be_captured=True))
    seen = training.codes(discriminator, discriminator.features)
    codes = leading_directions(seen, device=training.device)
    assignments, _ = k_means(directions(whitened(codes)), n_clusters, seed, training.device)
    return Clustering(assignments, features=codes, network=discriminator)


def draw_noise(n_images: int, draws: torch.Generator) -> Tensor:
    """`n_images` x 100, even between -1 and 1, on the generator's device."""
    drawn = torch.rand(n_images, N_NOISE, generator=draws, device=draws.device)
    return 2 * drawn - 1
