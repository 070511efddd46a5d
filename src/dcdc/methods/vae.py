"""VAE: K-Means on the means of a variational autoencoder's codes.

Kingma and Welling, Auto-encoding variational Bayes, 2014. A code is a Gaussian, not a point: images
are made again from a draw of it, and its divergence from the standard Gaussian is paid for, so that
codes say only what they must and near codes mean alike images.

Convolutional; pixels are Gaussians of half their channel's deviation, since at the whole one most
numbers of a digit's code say nothing. The rest is as AE's, but photos are corrupted and made again
as DAE's (Im et al., Denoising criterion for variational auto-encoding framework, 2017).
"""

import torch

from dcdc.data import ImageSet
from dcdc.engine.simple_training import Batch, Terms
from dcdc.losses import gaussian_divergence, reconstruction_loss
from dcdc.methods.autoencoding import averaged_with_mirror, build_autoencoder, uncorrupted
from dcdc.methods.context import Clustering, Context
from dcdc.methods.dae import corruption_for
from dcdc.methods.training_context import TrainingContext, k_means, whitened
from dcdc.metrics.directions import directions
from dcdc.networks.generative import VariationalAutoencoder


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_code: int | None = None,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    deviation: float = 0.5,
) -> Clustering:
    training = TrainingContext.open(image_set, seed, context, batch_size)
    budget = training.budget(n_steps, width, learning_rate)
    n_code, photos = training.code_size(n_code), training.of_photos
    network = build_autoencoder(
        training, VariationalAutoencoder, n_code, budget.width, denoising=photos
    )
    corrupted = corruption_for(training) if photos else uncorrupted

    def loss_of(batch: Batch) -> Terms:
        mean, log_variance = network.distribution(corrupted(batch.images, batch.draws))
        noise = torch.randn(mean.shape, generator=batch.draws, device=mean.device)
        made = network.decode(mean + noise * (log_variance / 2).exp())
        error = reconstruction_loss(made, network.wanted(batch.images)) / deviation**2
        divergence = gaussian_divergence(mean, log_variance)
        return {"loss": error + divergence, "reconstruction": error, "divergence": divergence}

    training.train(training.phase(loss_of, network.parameters(), budget))
    if photos:
        codes = training.codes(network, averaged_with_mirror(network.encode))
        shown = directions(whitened(codes, floor=1 / 500))
    else:
        codes = training.codes(network, network.encode)
        shown = directions(codes)
    assignments, _ = k_means(shown, n_clusters, seed, training.device)
    return Clustering(assignments, features=codes, network=network)
