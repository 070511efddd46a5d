"""The draw that the ops share."""

import torch
from torch import Generator, Tensor


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator) -> Tensor:
    """Uniform in [low, high), on the generator's device."""
    return torch.empty(shape, device=generator.device).uniform_(low, high, generator=generator)
