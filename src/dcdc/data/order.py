"""The seeded order in which an epoch visits the images."""

import torch
from torch import Tensor

from dcdc.errors import InputError


def epoch_batches(n_images: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Indices, steps x batch_size: a fresh permutation cut into batches of one size.

    The incomplete last batch is dropped; the next epoch's permutation leaves out other images.
    """
    if not 1 <= batch_size <= n_images:
        raise InputError(
            f"batch size is {batch_size} for {n_images} images: give one from 1 to {n_images}"
        )
    order = torch.randperm(n_images, generator=generator, device=generator.device)
    n_steps = n_images // batch_size
    return order[: n_steps * batch_size].view(n_steps, batch_size)
