"""DAE: K-Means on the codes of a denoising autoencoder.

Vincent et al., Stacked denoising autoencoders, 2010. As AE, but the encoder sees a corrupted image
and the decoder must make the clean one: codes so learn to tell what belongs together from noise.

Corrupted by Gaussian noise and by pixels set to the mean, as in the paper, and also moved a
little (and, in colour, recoloured) by the perturbations that DCDC knows, which the paper did not
have: what the code shall not depend on. Such codes have little noise to magnify and are whitened
(digits: .90 instead of .81; AE's own gain nothing). Convolutional, trained as a whole; the rest is
as AE's.

Photos are corrupted as much as for a contrast of instances: a crop in other colours, or in none, of
which the whole image is made again, whitened. K-Means sees the means of the encoder's last maps.
"""

from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from dcdc.augment import PerturbedCopy
from dcdc.data import ImageSet
from dcdc.methods.autoencoding import (
    Corruption,
    averaged_with_mirror,
    build_autoencoder,
    reconstruction,
)
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import TrainingContext, k_means, whitened
from dcdc.metrics.directions import directions
from dcdc.networks.generative import Autoencoder

MASKED = 0.1
"""Of all pixels."""
_MOVED: dict[str, Any] = {
    **{"rotation": 10.0, "shift": 0.1, "scale": (0.9, 1.1), "shear": 6.0},
    "noise": 0.1,
}
_RECOLOURED: dict[str, Any] = {
    **{"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    "flip": 0.5,
}
SMALLEST_CROP = 0.3
"""Of a photo's area."""


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
) -> Clustering:
    training = TrainingContext.open(image_set, seed, context, batch_size)
    budget = training.budget(n_steps, width, learning_rate)
    n_code = training.code_size(n_code)
    network = build_autoencoder(training, Autoencoder, n_code, budget.width, denoising=True)
    loss_of = reconstruction(network, corruption_for(training))
    training.train(training.phase(loss_of, network.parameters(), budget))
    if training.of_photos:
        codes = np.sqrt(training.codes(network, averaged_with_mirror(network.features)))
        shown = directions(whitened(codes, floor=1 / 500))
    else:
        codes = training.codes(network, network.encode)
        shown = directions(whitened(codes))
    assignments, _ = k_means(shown, n_clusters, seed, training.device)
    return Clustering(assignments, features=codes, network=network)


def corruption_for(training: TrainingContext, smallest_crop: float = SMALLEST_CROP) -> Corruption:
    if training.of_photos:
        return PerturbedCopy(crop_scale=(smallest_crop, 1.0), grey=0.2, **_RECOLOURED)
    grey = training.image_set.channels == 1
    perturbed = PerturbedCopy(**(_MOVED if grey else _MOVED | _RECOLOURED))

    def corrupted(images: Tensor, draws: Generator) -> Tensor:
        copies = perturbed.apply(images, perturbed.draw(images, draws))
        shape = (len(copies), 1, *copies.shape[2:])
        masked = torch.rand(shape, generator=draws, device=copies.device) < MASKED
        return torch.where(masked, copies.mean(dim=(2, 3), keepdim=True), copies)

    return corrupted
