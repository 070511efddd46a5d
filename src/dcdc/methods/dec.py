"""DEC: an autoencoder's codes and K centres, refined together until each image is sure of one.

Xie, Girshick and Farhadi, Unsupervised deep embedding for clustering analysis, 2016. Images belong
to centres by Student's t of their codes' distance; squared and divided by the clusters' sizes these
shares are the targets, and encoder and centres descend their divergence from them: the sure teach
the unsure.

As there: denoising pre-training, a code of 10 numbers, centres by K-Means, targets taken of all
images at once and kept for a while, here an epoch. Convolutional, Adam at a tenth of the first
rate, and a number of steps instead of a share of images that may still change. Photos are corrupted
and made again as DAE's.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from dcdc.data import ImageSet
from dcdc.engine.simple_training import Batch, Terms, codes_of
from dcdc.losses import sharpened_target, student_assignment, target_divergence
from dcdc.methods.autoencoding import build_autoencoder, reconstruction
from dcdc.methods.context import Clustering, Context
from dcdc.methods.dae import corruption_for
from dcdc.methods.training_context import TrainingContext, k_means
from dcdc.networks.generative import Autoencoder


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_code: int = 10,
    width: int | None = None,
    n_steps: int | None = None,
    n_refining_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
) -> Clustering:
    training = TrainingContext.open(image_set, seed, context, batch_size)
    budget = training.budget(n_steps, width, learning_rate)
    n_code = training.code_size(n_code)
    network = build_autoencoder(training, Autoencoder, n_code, budget.width, denoising=True)
    centres = nn.Parameter(torch.zeros(n_clusters, n_code, device=training.device))
    targets = torch.zeros(image_set.n_images, n_clusters, device=training.device)

    def take_targets(epoch: int) -> None:
        codes = codes_of(network, network.encode, training.store)
        with torch.no_grad():
            if epoch == 1:
                found = k_means(codes.cpu().numpy(), n_clusters, seed, training.device)[1]
                centres.copy_(torch.from_numpy(found))
            targets.copy_(sharpened_target(student_assignment(codes, centres)))

    def loss_of(batch: Batch) -> Terms:
        assign = student_assignment(network.encode(batch.images), centres)
        return {"loss": target_divergence(targets[batch.indices], assign)}

    first = reconstruction(network, corruption_for(training))
    refined = [*network.encoder.parameters(), centres]
    refining = replace(
        budget,
        n_steps=n_refining_steps or budget.n_steps * 2 // 5,
        learning_rate=budget.learning_rate / 10,
    )
    training.train(
        training.phase(first, network.parameters(), budget),
        training.phase(loss_of, refined, refining, take_targets),
    )
    codes = training.codes(network, network.encode)
    assign = student_assignment(torch.from_numpy(codes), centres.detach().cpu()).numpy()
    return Clustering(
        assign.argmax(axis=1).astype(np.int64),
        probabilities=assign,
        features=codes,
        network=network,
    )
