"""VAE: K-Means on the means of a variational autoencoder's codes.

Kingma and Welling, Auto-encoding variational Bayes, 2014. A code is a Gaussian, not a point: images
are made again from a draw of it, and its divergence from the standard Gaussian is paid for, so that
codes say only what they must and near codes mean alike images.

Convolutional; pixels are Gaussians of half their channel's deviation, since at the whole one most
numbers of a digit's code say nothing. The rest is as AE's.
"""

from pathlib import Path

import torch

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer
from dcdc.engine.short_training import Batch, ShortPhase, Terms, adam_step
from dcdc.losses import gaussian_divergence, reconstruction_loss
from dcdc.methods.autoencoding import build_autoencoder
from dcdc.methods.method import SILENT, Clustering, check_task
from dcdc.methods.representation import Studio, directions, k_means
from dcdc.networks.autoencoder import VariationalAutoencoder


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    folder: Path | None = None,  # noqa: ARG001
    n_code: int = 16,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int = 128,
    learning_rate: float | None = None,
    deviation: float = 0.5,
) -> Clustering:
    check_task(image_set, n_clusters)
    studio = Studio.open(image_set, seed, device, observer, batch_size)
    effort = studio.effort(n_steps, width, learning_rate)
    network = build_autoencoder(studio, VariationalAutoencoder, n_code, effort.width)

    def loss_of(batch: Batch) -> Terms:
        mean, log_variance = network.distribution(batch.images)
        noise = torch.randn(mean.shape, generator=batch.draws, device=mean.device)
        made = network.decode(mean + noise * (log_variance / 2).exp())
        error = reconstruction_loss(made, network.normalise(batch.images)) / deviation**2
        divergence = gaussian_divergence(mean, log_variance)
        return {"loss": error + divergence, "reconstruction": error, "divergence": divergence}

    step = adam_step(loss_of, list(network.parameters()), effort.learning_rate)
    studio.train(ShortPhase(step, studio.epochs(effort.n_steps)))
    codes = studio.codes(network, network.encode)
    assignments, _ = k_means(directions(codes), n_clusters, seed)
    return Clustering(assignments, features=codes, network=network)
