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

import torch
from torch import Tensor

from dcdc.data import ImageSet
from dcdc.engine.optimiser import Adam
from dcdc.engine.simple_training import Batch, SimplePhase, Terms
from dcdc.losses import discriminator_loss, generator_loss
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import TrainingContext, k_means, leading_directions
from dcdc.networks.generative import Discriminator, Generator
from dcdc.prepare.suggestions import TINY

N_NOISE = 64
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
    budget = training.budget(n_steps, width, learning_rate)
    shape = (image_set.channels, image_set.side, budget.width)
    generator, discriminator = training.build(
        lambda: torch.nn.ModuleList([Generator(N_NOISE, *shape), Discriminator(*shape)])
    )
    assert isinstance(generator, Generator)
    assert isinstance(discriminator, Discriminator)
    generator_adam, discriminator_adam = (
        Adam(network.parameters(), budget.learning_rate, BETAS)
        for network in (generator, discriminator)
    )

    def step(batch: Batch) -> Terms:
        n_images = len(batch.images)
        noise = torch.randn(n_images, N_NOISE, generator=batch.draws, device=training.device)
        made: Tensor = generator(noise)
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

    training.train(SimplePhase(step, training.epochs(budget.n_steps)))
    grid = 4 if image_set.side <= TINY else 2
    seen = training.codes(discriminator, lambda images: discriminator.features(images, grid))
    codes = leading_directions(seen)
    assignments, _ = k_means(codes, n_clusters, seed)
    return Clustering(assignments, features=codes, network=discriminator)
