"""Autoencoders for the images at hand: what AE, DAE, VAE and DEC share."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import Generator, Tensor

from dcdc.data import channel_statistics
from dcdc.engine.short_training import Batch, ShortStep, Terms, adam_step
from dcdc.losses import reconstruction_loss
from dcdc.methods.representation import Studio
from dcdc.networks.autoencoder import Autoencoder

Kind = TypeVar("Kind", bound=Autoencoder)
Corruption = Callable[[Tensor, Generator], Tensor]
"""Of images in [0, 1], by draws."""


def uncorrupted(images: Tensor, draws: Generator) -> Tensor:  # noqa: ARG001
    return images


def build_autoencoder(studio: Studio, kind: Callable[..., Kind], n_code: int, width: int) -> Kind:
    image_set = studio.image_set
    mean, std = channel_statistics(image_set.images)
    shape: tuple[Any, ...] = (image_set.channels, image_set.side, n_code)
    return studio.build(lambda: kind(*shape, mean=mean, std=std, width=width))


def autoencoding_step(
    network: Autoencoder, learning_rate: float, corrupted: Corruption = uncorrupted
) -> ShortStep:
    """Images are made again from the codes of their corrupted selves."""

    def loss_of(batch: Batch) -> Terms:
        made = network.decode(network.encode(corrupted(batch.images, batch.draws)))
        return {"loss": reconstruction_loss(made, network.normalise(batch.images))}

    return adam_step(loss_of, list(network.parameters()), learning_rate)
