"""Autoencoders for the images at hand: what AE, DAE, VAE and DEC share."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor, nn

from dcdc.augment import to_float
from dcdc.data import channel_statistics
from dcdc.data.mapped import gather_spread
from dcdc.engine.simple_training import Batch, Terms
from dcdc.losses import reconstruction_loss
from dcdc.methods.training_context import TrainingContext
from dcdc.networks.generative import Autoencoder
from dcdc.networks.layers import Normalise
from dcdc.networks.whitening import LocalContrast, Whitening, cross_spectrum

Kind = TypeVar("Kind", bound=Autoencoder)
Corruption = Callable[[Tensor, Generator], Tensor]
"""Of images in [0, 1], by draws."""

_N_MEASURED = 2_000
"""Images that say how strong each frequency is."""


def uncorrupted(images: Tensor, draws: Generator) -> Tensor:  # noqa: ARG001
    return images


def build_autoencoder(
    training: TrainingContext,
    kind: Callable[..., Kind],
    n_code: int,
    width: int,
    *,
    denoising: bool,
) -> Kind:
    """A `denoising` one reconstructs an image from a corrupted copy.

    Photos are then seen by residual blocks whose maps are averaged, and whitened ones are made of
    them; others make photos of even contrast. Both know more of shapes so than of large areas'
    colours.
    """
    image_set = training.image_set
    mean, std = channel_statistics(image_set.images)
    shape: tuple[Any, ...] = (image_set.channels, image_set.side, n_code)
    settings: dict[str, Any] = {"mean": mean, "std": std, "width": width}
    if training.of_photos:
        normalise = Normalise(mean, std)
        evened = _whitening(training, normalise) if denoising else LocalContrast()
        settings |= {"pooled": denoising, "evened": evened}
    return training.build(lambda: kind(*shape, **settings))


def reconstruction(
    network: Autoencoder, corrupted: Corruption = uncorrupted
) -> Callable[[Batch], Terms]:
    """The loss of images that are reconstructed from the codes of their corrupted copies."""

    def loss_of(batch: Batch) -> Terms:
        made = network.decode(network.encode(corrupted(batch.images, batch.draws)))
        return {"loss": reconstruction_loss(made, network.wanted(batch.images))}

    return loss_of


def averaged_with_mirror(of: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The mean of an image's and its mirror image's: a photo shows the same either way."""
    return lambda images: (of(images) + of(images.flip(3))) / 2


def _whitening(training: TrainingContext, normalise: nn.Module) -> Whitening:
    some = gather_spread(training.image_set.images, about=_N_MEASURED, at_a_time=100)
    batches = (to_float(torch.from_numpy(pixels).permute(0, 3, 1, 2)) for pixels in some)
    return Whitening(cross_spectrum(normalise(images) for images in batches))
